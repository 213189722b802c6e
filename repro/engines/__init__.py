"""Places where a cell's trials run: Docker containers, virtual environments, this interpreter."""
