"""What a test draws at random: noted, kept as bits, and given again."""
