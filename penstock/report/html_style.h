#pragma once

namespace penstock {

/// How the page of a run looks, in light and in dark.
inline constexpr const char* kHtmlStyle = R"css(
:root { color-scheme: light dark;
  --paper: #fff; --ink: #18212f; --dim: #5a6675; --line: #dde2ea;
  --card: #f4f6f9; --compute: #2a9d6f; --data: #e48a22; --copy: #3f7fd6;
  --host: #9a63c4; --sync: #cc4f66; --outside: #c3cad4; --bar: #7c93ad; }
@media (prefers-color-scheme: dark) { :root {
  --paper: #12161c; --ink: #e4e9f0; --dim: #98a4b3; --line: #2c343f;
  --card: #1b212a; --compute: #35b583; --data: #eda047; --copy: #6aa2ee;
  --host: #b58bd9; --sync: #e0748a; --outside: #46505d; --bar: #66809d; } }
* { box-sizing: border-box; }
body { margin: 0; background: var(--paper); color: var(--ink);
  font: 15px/1.5 system-ui, -apple-system, "Segoe UI", sans-serif; }
main { max-width: 62rem; margin: 0 auto; padding: 1.5rem 1.25rem 3rem; }
h1 { font-size: 1.5rem; line-height: 1.3; margin: .2rem 0 .8rem; }
h2 { font-size: 1.1rem; margin: 2.2rem 0 .6rem; }
p { margin: .4rem 0; }
.run, .because, .about, .axis, footer { color: var(--dim); font-size: .85rem; }
.run { overflow-wrap: anywhere; }
.action { border-left: 4px solid var(--compute); background: var(--card);
  padding: .6rem .9rem; border-radius: 0 6px 6px 0; font-weight: 600; }
.action.more { font-weight: 400; border-color: var(--line); }
.action.none { font-weight: 400; border-color: var(--outside); }
.figures { display: grid; gap: .6rem; margin-top: 1rem;
  grid-template-columns: repeat(auto-fit, minmax(8.5rem, 1fr)); }
.figure { background: var(--card); border-radius: 6px; padding: .6rem .8rem; }
.figure b { display: block; font-size: 1.35rem; line-height: 1.3; }
.figure span { color: var(--dim); font-size: .8rem; }
.legend { list-style: none; display: flex; flex-wrap: wrap; gap: .2rem 1.1rem;
  margin: 0 0 .5rem; padding: 0; font-size: .9rem; }
.legend i { display: inline-block; width: .75rem; height: .75rem;
  border-radius: 2px; margin-right: .4rem; }
i.compute, i.train { background: var(--compute); }
i.wait_data, i.val { background: var(--data); }
i.wait_copy { background: var(--copy); } i.host { background: var(--host); }
i.sync { background: var(--sync); } i.outside { background: var(--outside); }
i.steps { background: var(--bar); }
i.checkpoint_s { background: var(--sync); }
i.validation_s { background: var(--copy); }
i.epoch_start_s { background: var(--data); }
i.other_s { background: var(--outside); }
.bar { display: flex; height: 1.5rem; border-radius: 4px; overflow: hidden;
  background: var(--card); margin-bottom: .6rem; }
.bar i { height: 100%; }
svg { display: block; width: 100%; background: var(--card);
  border-radius: 4px; }
svg.stack { height: 9rem; } svg.lines { height: 6rem; }
.curve svg.lines { height: 4rem; }
path.compute { fill: var(--compute); } path.wait_data { fill: var(--data); }
path.wait_copy { fill: var(--copy); } path.host { fill: var(--host); }
path.sync { fill: var(--sync); } path.outside { fill: var(--outside); }
polyline { fill: none; stroke-width: 1.6; stroke: var(--copy);
  vector-effect: non-scaling-stroke; }
polyline.train { stroke: var(--compute); } polyline.val { stroke: var(--data); }
.axis { display: flex; justify-content: space-between; margin-top: .15rem; }
i.best { background: var(--ink); width: 2px; }
path.best { fill: none; stroke: var(--ink); stroke-width: 1.6;
  stroke-dasharray: 4 3; vector-effect: non-scaling-stroke; }
.matrix { width: auto; }
.matrix th { position: static; }
.matrix .up { vertical-align: bottom; text-align: center; padding: .3rem .1rem; }
.matrix .up span { writing-mode: vertical-rl; transform: rotate(180deg); }
td.count { text-align: right; padding: .3rem .5rem; min-width: 2.4rem; }
td.zero { color: var(--dim); }
td.right { background: color-mix(in srgb, var(--compute) var(--strength),
  transparent); }
td.wrong { background: color-mix(in srgb, var(--sync) var(--strength),
  transparent); }
svg.scatter { max-width: 22rem; aspect-ratio: 1; }
.scatter circle { fill: var(--copy); fill-opacity: .55; }
.scatter .right { stroke: var(--dim); fill: none; stroke-width: .4; }
.bars { display: flex; align-items: flex-end; gap: 1px; height: 9rem;
  background: var(--card); border-radius: 4px; padding: .2rem; }
.bars i { flex: 1; background: var(--copy); min-height: 1px; }
.sample { white-space: pre-wrap; overflow-wrap: anywhere; margin: .6rem 0;
  background: var(--card); border-radius: 6px; padding: .5rem .8rem; }
.sample span { color: var(--dim); }
td img { display: block; max-width: 4rem; border-radius: 3px; }
.stage { margin: .55rem 0; }
.name { display: flex; justify-content: space-between; gap: 1rem;
  font-size: .92rem; }
.name .of { white-space: nowrap; }
.name b { margin-right: .4rem; }
.track { position: relative; height: 1.35rem; background: var(--card);
  border-radius: 4px; margin: .1rem 0; }
.track .rate { position: absolute; left: 0; top: 0; height: 100%;
  background: var(--bar); border-radius: 4px; min-width: 2px; }
.track .beyond { border-radius: 4px 0 0 4px; }
.limits .rate { background: var(--data); }
.track .needed { position: absolute; top: -3px; bottom: -3px; width: 2px;
  background: var(--ink); }
.wide { overflow-x: auto; max-height: 30rem; /* shadows where it goes on */
  background:
    linear-gradient(90deg, var(--paper) 1rem, transparent) 0 0 / 2rem 100%
      no-repeat local,
    linear-gradient(270deg, var(--paper) 1rem, transparent) 100% 0 / 2rem 100%
      no-repeat local,
    linear-gradient(90deg, var(--line), transparent) 0 0 / .8rem 100%
      no-repeat scroll,
    linear-gradient(270deg, var(--dim), transparent) 100% 0 / .8rem 100%
      no-repeat scroll; }
table { border-collapse: collapse; font-size: .88rem; width: 100%; }
th { text-align: left; color: var(--dim); font-weight: 600;
  position: sticky; top: 0; background: var(--paper); }
th, .about span { white-space: nowrap; }
th, td { padding: .3rem .9rem .3rem 0; border-bottom: 1px solid var(--line);
  vertical-align: top; }
td { font-variant-numeric: tabular-nums; white-space: nowrap; }
.memory td { min-width: 7rem; }
.small { height: .45rem; background: var(--card); border-radius: 3px; }
.small i { display: block; height: 100%; border-radius: 3px; min-width: 1px; }
.small .planned { background: var(--outside); }
.small .used { background: var(--copy); }
.curves { display: grid; gap: .9rem; margin: .6rem 0;
  grid-template-columns: repeat(auto-fit, minmax(15rem, 1fr)); }
.curve .of { color: var(--dim); font-size: .85rem; }
details { border-top: 1px solid var(--line); padding: .5rem 0; }
details td { overflow-wrap: anywhere; white-space: normal; }
details td:first-child { min-width: 9rem; }
summary { cursor: pointer; font-weight: 600; }
footer { margin-top: 2rem; }
@media (max-width: 40rem) {
  main { padding: 1rem .75rem 2rem; }
  h1 { font-size: 1.25rem; }
  table { font-size: .78rem; }
  th, td { padding-right: .35rem; white-space: normal; }
  .memory td { min-width: 0; }
  details td:first-child { min-width: 6rem; } }
)css";

}  // namespace penstock
