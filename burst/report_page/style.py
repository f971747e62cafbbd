# SPDX-License-Identifier: MIT
"""How the page looks: light, dark, narrow, wide, and on paper."""

STYLE = """
:root { color-scheme: light dark;
  --paper: #ffffff; --panel: #f5f6f8; --ink: #1c2430; --quiet: #5a6675; --rule: #d8dde4;
  --provision: #e0a100; --join: #1d8fb8; --online: #2e9b57; --drain: #9a6dc9;
  --reap: #6f7a89; --wait: #c9d1db; --run: #2e9b57; --bad: #c4352b; --accent: #2159c4; }
@media (prefers-color-scheme: dark) { :root {
  --paper: #12161c; --panel: #1b212a; --ink: #e4e9f0; --quiet: #9aa7b6; --rule: #323b47;
  --provision: #f0bc3d; --join: #4db8de; --online: #4cc27a; --drain: #b893e3;
  --reap: #8b97a7; --wait: #465260; --run: #4cc27a;
  --bad: #f2766c; --accent: #7fa8f5; } }
* { box-sizing: border-box; }
body { margin: 0; background: var(--paper); color: var(--ink);
  font: 15px/1.5 system-ui, -apple-system, "Segoe UI", "DejaVu Sans", sans-serif; }
main { max-width: 1180px; margin: 0 auto; padding: 20px 16px 60px; }
h1 { font-size: 1.6em; line-height: 1.2; margin: 0 0 4px; }
h2 { font-size: 1.2em; margin: 40px 0 8px; padding-bottom: 4px;
  border-bottom: 1px solid var(--rule); }
h3 { font-size: 1em; margin: 20px 0 6px; }
p { margin: 6px 0; max-width: 75ch; overflow-wrap: anywhere; }
.quiet { color: var(--quiet); } .bad { color: var(--bad); }
.tiles { display: grid; gap: 10px; margin: 16px 0;
  grid-template-columns: repeat(4, 1fr); }
.tile { background: var(--panel); border-radius: 8px; padding: 10px 14px; }
.tile b { display: block; font-size: 1.5em; line-height: 1.3; font-weight: 600; }
.scroll { overflow-x: auto; }
table { border-collapse: collapse; min-width: 100%; font-size: .92em; }
th, td { text-align: left; vertical-align: top; padding: 5px 14px 5px 0;
  border-bottom: 1px solid var(--rule); white-space: nowrap; }
th { color: var(--quiet); font-weight: 500; }
.number { text-align: right; font-variant-numeric: tabular-nums; }
td.text { white-space: normal; min-width: 22ch; overflow-wrap: anywhere; }
td code { white-space: nowrap; }
code { font: .92em ui-monospace, "DejaVu Sans Mono", monospace; }
.legend { display: flex; flex-wrap: wrap; gap: 4px 16px; margin: 8px 0;
  font-size: .88em; color: var(--quiet); }
.legend i { display: inline-block; width: 11px; height: 11px; border-radius: 2px;
  margin-right: 6px; }
.row { display: grid; gap: 0 14px; margin: 0 0 3px; align-items: center;
  grid-template-columns: 370px minmax(0, 1fr) 170px; font-size: .85em;
  break-inside: avoid; }
.row > div { min-width: 0; overflow-wrap: anywhere; }
.row .label { display: flex; flex-wrap: wrap; gap: 0 12px; align-items: baseline; }
.row .label * { min-width: 0; }
.row .told { color: var(--quiet); font-variant-numeric: tabular-nums; }
svg.bar { display: block; width: 100%; height: 12px; border-radius: 3px;
  background: var(--panel); }
.axis { display: flex; justify-content: space-between; font-size: .8em;
  color: var(--quiet); margin: 2px 184px 6px 384px;
  font-variant-numeric: tabular-nums; }
.provision { fill: var(--provision); background: var(--provision); }
.join { fill: var(--join); background: var(--join); }
.online { fill: var(--online); background: var(--online); }
.drain { fill: var(--drain); background: var(--drain); }
.reap { fill: var(--reap); background: var(--reap); }
.wait { fill: var(--wait); background: var(--wait); }
.run { fill: var(--run); background: var(--run); }
.here { fill: var(--accent); background: var(--accent); }
.lost { fill: var(--bad); background: var(--bad); }
.new { fill: var(--wait); background: var(--wait); }
@media (max-width: 900px) { .axis { margin: 2px 0 8px; }
  .row { grid-template-columns: minmax(0, 1fr) auto; margin: 0 0 9px; }
  .row .bar { grid-row: 2; grid-column: 1 / 3; } }
@media (max-width: 600px) { main { padding: 14px 12px 40px; }
  .tiles { grid-template-columns: 1fr 1fr; }
  .row { display: block; } }
@media print { :root { color-scheme: light; --paper: #fff; --panel: #f1f2f4;
    --ink: #000; --quiet: #444; --rule: #bbb; --provision: #e0a100; --join: #1d8fb8;
    --online: #2e9b57; --drain: #9a6dc9; --reap: #6f7a89; --wait: #c9d1db;
    --run: #2e9b57; --bad: #b02018; --accent: #2159c4; }
  * { print-color-adjust: exact; -webkit-print-color-adjust: exact; }
  @page { size: A4; margin: 15mm 13mm; }
  body { font-size: 10pt; } main { max-width: none; padding: 0; }
  h2 { break-after: avoid; margin-top: 22pt; } tr, .tile { break-inside: avoid; }
  .row { grid-template-columns: 72mm 1fr 38mm; font-size: 8pt; }
  .row .bar { grid-row: auto; grid-column: auto; height: 9px; }
  .axis { margin: 2px calc(38mm + 14px) 6px calc(72mm + 14px); }
  .tiles { grid-template-columns: repeat(4, 1fr); }
  .scroll { overflow: visible; } table { font-size: 8.5pt; }
  th, td { padding-right: 8pt; white-space: normal; } }
"""
"""CSS. Colours of bars are the fill of what is drawn and the ground of its legend."""
