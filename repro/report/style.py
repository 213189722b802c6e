"""The page's one style sheet: light and dark, wide and narrow, no script and nothing from elsewhere."""

from __future__ import annotations

STYLE = """
:root {
  color-scheme: light dark;
  --paper: #fbfaf7; --sheet: #ffffff; --ink: #1f2328; --soft: #5f6670; --faint: #8a919b;
  --line: #e4e1da; --wash: #f3f1ec; --accent: #b3462c; --accent-wash: #b3462c26; --calm: #9aa5b1;
}
@media (prefers-color-scheme: dark) {
  :root {
    --paper: #15171a; --sheet: #1b1e22; --ink: #e6e4df; --soft: #a5abb3; --faint: #7c838c;
    --line: #2c3036; --wash: #22262b; --accent: #ee8a68; --accent-wash: #ee8a6833; --calm: #66717d;
  }
}
* { box-sizing: border-box; }
html { -webkit-text-size-adjust: 100%; }
body {
  margin: 0; background: var(--paper); color: var(--ink);
  font: 17px/1.6 system-ui, -apple-system, "Segoe UI", Roboto, "Helvetica Neue", sans-serif;
  font-variant-numeric: tabular-nums;
}
main { max-width: 60rem; margin: 0 auto; padding: clamp(1.5rem, 5vw, 4rem) clamp(1.1rem, 4vw, 3rem) 5rem; }
h1, h2, h3 { font-family: Charter, "Bitstream Charter", "Iowan Old Style", Georgia, "DejaVu Serif", serif; }
h1 { font-size: clamp(1.5rem, 1.1rem + 1.9vw, 2.3rem); line-height: 1.22; font-weight: 600; margin: 0 0 .8rem;
  letter-spacing: -.012em; overflow-wrap: anywhere; text-wrap: balance; }
h2 { font-size: 1.42rem; line-height: 1.3; font-weight: 600; margin: 4.2rem 0 .9rem; }
h3 { font-size: 1.04rem; font-weight: 600; margin: 2.2rem 0 .5rem; }
p, ul, dl { max-width: 46rem; margin: 0 0 1rem; }
ul { padding-left: 1.15rem; }
li { margin: .3rem 0; overflow-wrap: anywhere; }
li::marker { color: var(--faint); }
code, pre { font-family: ui-monospace, "SF Mono", "Cascadia Mono", Menlo, "DejaVu Sans Mono", monospace; }
code { font-size: .875em; overflow-wrap: anywhere; }
a { color: var(--accent); text-decoration-thickness: 1px; text-underline-offset: .16em;
  overflow-wrap: anywhere; }
.about, .note, figcaption { color: var(--soft); font-size: .92rem; }
.about { margin-bottom: 2.4rem; overflow-wrap: anywhere; }
.verdict { margin: 0; max-width: none; padding: .35rem 0; border-top: 2px solid var(--accent);
  border-bottom: 1px solid var(--line); }
.verdict div { display: grid; grid-template-columns: 9.5rem 1fr; gap: .15rem 1.4rem; padding: .8rem 0;
  border-bottom: 1px solid var(--line); }
.verdict div:last-child { border-bottom: 0; }
.verdict dt { font-weight: 600; }
.verdict dd { margin: 0; overflow-wrap: anywhere; }
.scroll { overflow-x: auto; margin: 1.2rem 0; -webkit-overflow-scrolling: touch; }
table { border-collapse: collapse; font-size: .875rem; min-width: 100%; }
th, td { text-align: left; padding: .5rem 1.1rem .5rem 0; border-bottom: 1px solid var(--line);
  vertical-align: top; white-space: nowrap; }
td.wrap { white-space: normal; min-width: 14rem; max-width: 30rem; overflow-wrap: anywhere; }
th { font-weight: 600; color: var(--soft); border-bottom-color: var(--faint); }
th.right, td.right { text-align: right; }
th:last-child, td:last-child { padding-right: 0; }
figure { margin: 1.8rem 0 2.2rem; }
figcaption { margin-top: .8rem; max-width: 46rem; }
svg { display: block; width: 100%; overflow: visible; }
.bars { list-style: none; padding: 0; margin: 0; max-width: none; }
.bars > li { display: grid; grid-template-columns: minmax(9rem, 21rem) minmax(6rem, 1fr) 9.5rem;
  gap: 0 1.3rem; align-items: center; margin: 0; padding: .38rem 0; }
.bars .name { line-height: 1.35; font-size: .92rem; overflow-wrap: anywhere; }
.bars .value { text-align: right; font-size: .92rem; white-space: nowrap; }
.bars .value small { color: var(--soft); font-size: .85em; }
.bars svg { height: 18px; }
.bars .marked .name, .bars .marked .value { color: var(--accent); font-weight: 600; }
.axis { position: relative; height: 1.5rem; color: var(--soft); font-size: .8rem; }
.axis span { position: absolute; transform: translateX(-50%); white-space: nowrap; }
.axis span.first { transform: none; } .axis span.last { transform: translateX(-100%); }
.track { stroke: var(--line); stroke-width: 1; } .interval { fill: var(--accent-wash); }
.point { stroke: var(--accent); stroke-width: 3; }
.quiet .interval { fill: var(--wash); } .quiet .point { stroke: var(--calm); }
.failing { fill: var(--accent); } .passing { fill: var(--calm); }
.limit { stroke: var(--ink); stroke-width: 1.5; stroke-dasharray: 5 4; }
.base { stroke: var(--faint); stroke-width: 1; }
.even { stroke: var(--soft); stroke-width: 1; stroke-dasharray: 3 3; }
line { vector-effect: non-scaling-stroke; }
.tall svg { height: 190px; } .small svg { height: 70px; }
.panels { display: grid; grid-template-columns: repeat(auto-fill, minmax(13.5rem, 1fr)); gap: 1.8rem 2.2rem; }
.panels p { margin: 0 0 .35rem; font-size: .88rem; }
.key { display: flex; flex-wrap: wrap; gap: .2rem 1.6rem; font-size: .88rem; color: var(--soft);
  margin: 0 0 .9rem; }
.key i { display: inline-block; width: .8em; height: .8em; border-radius: 2px; margin-right: .5em; }
.key .fails { background: var(--accent); } .key .passes { background: var(--calm); }
.cause { border-left: 3px solid var(--line); padding: .1rem 0 .1rem 1.2rem; margin: 1.4rem 0; }
.cause.supported { border-left-color: var(--accent); }
.cause h3 { margin: 0 0 .2rem; }
.tag { color: var(--soft); font-weight: 400; font-family: system-ui, sans-serif; font-size: .85rem;
  margin-left: .5em; }
.supported .tag { color: var(--accent); }
pre { background: var(--wash); border-radius: 6px; padding: 1rem 1.2rem; overflow-x: auto; font-size: .82rem;
  line-height: 1.5; max-width: 100%; }
details { border-top: 1px solid var(--line); padding: .9rem 0; }
details:last-of-type { border-bottom: 1px solid var(--line); }
summary { cursor: pointer; font-weight: 600; }
footer { margin-top: 4rem; color: var(--faint); font-size: .85rem; }
@media (max-width: 44rem) {
  body { font-size: 16px; }
  h2 { margin-top: 3.2rem; }
  .verdict div { grid-template-columns: 1fr; }
  .bars > li { grid-template-columns: 1fr 8rem; padding: .55rem 0; }
  .bars .name { grid-column: 1 / -1; }
  .bars > li.ends .value { visibility: hidden; }
}
@media print { :root { --paper: #fff; } main { padding: 0; max-width: none; }
  details { break-inside: avoid; } }
"""
