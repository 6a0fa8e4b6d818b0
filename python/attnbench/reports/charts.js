// How charts look: themes, marks of keys, what a label shows; Plotly, unpacked when it is needed.
const THEMES = {
  light: {page: '#ffffff', ink: '#1c1c1c', quiet: '#565656', line: '#dddddd', band: 'rgba(120,120,120,0.20)', behind: '#cccccc'},
  dark: {page: '#16181b', ink: '#ececec', quiet: '#b4b4b4', line: '#3a3d42', band: 'rgba(170,170,170,0.22)', behind: '#4d5157'},
};
const DASHED = {'best shortcut': 'dash', chance: 'dot', even: 'dash'};
// Parts of bars differ in pattern too, so that they differ in grey.
const PATTERNS = ['', '/', '.', '\\', 'x', '-', '|', '+'];
const LISTS = new Set(['scores', 'parts']);
const MOST = 8; // lines beside exact attention that can be told apart, as in the pictures of plot
const ZOOM = 1.5; // of one key press
const BEST = 'best'; // highlights the best lines of each picture
const EXACT = 'exact'; // what ratios are to, where it is no label of a series
// On three lines, so that a label fits into its picture.
const hovering = text => escaped(text).replace(': ', ': <br>').replace(/ \((?=[^()]*\)$)/, ' <br>(');
const escaped = text => text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;'); // Plotly reads tags
let loading = null;
// Unpacks Plotly when the first picture is near: text and tables do not wait for it.
function withPlotly() {
  return loading ||= (async () => {
    const packed = Uint8Array.from(atob(document.getElementById('plotly').textContent), c => c.charCodeAt(0));
    const stream = new Blob([packed]).stream().pipeThrough(new DecompressionStream('gzip'));
    const script = document.createElement('script');
    script.textContent = await new Response(stream).text();
    document.head.append(script);
    return window.Plotly;
  })();
}

const SHAPES = { // of markers about (0, 0), radius 4
  circle: 'M4,0A4,4 0 1 1 -4,0A4,4 0 1 1 4,0Z', square: 'M-3.5,-3.5H3.5V3.5H-3.5Z', diamond: 'M0,-4.6L4.6,0L0,4.6L-4.6,0Z',
  'triangle-up': 'M0,-4.5L4.4,3.2H-4.4Z', 'triangle-down': 'M0,4.5L4.4,-3.2H-4.4Z', 'diamond-tall': 'M0,-5.6L3,0L0,5.6L-3,0Z',
  cross: 'M-1.6,-4.4H1.6V-1.6H4.4V1.6H1.6V4.4H-1.6V1.6H-4.4V-1.6H-1.6Z', pentagon: 'M0,-4.6L4.4,-1.4L2.7,3.7H-2.7L-4.4,-1.4Z',
  star: 'M0,-5L1.3,-1.7L4.8,-1.5L2,0.7L3,4.1L0,2.2L-3,4.1L-2,0.7L-4.8,-1.5L-1.3,-1.7Z', hexagon: 'M0,-4.6L4,-2.3V2.3L0,4.6L-4,2.3V-2.3Z',
};
function swatch(series, color) {
  const [shape, open, dot] = [series.symbol.replace(/(-open)?(-dot)?$/, ''), series.symbol.includes('-open'), series.symbol.includes('-dot')];
  const root = svg('svg', {class: 'swatch', viewBox: '0 0 44 16', 'aria-hidden': 'true'});
  const dash = series.dash === 'solid' ? 'none' : series.dash.replaceAll('px', '');
  root.append(svg('line', {x1: 1, x2: 43, y1: 8, y2: 8, stroke: color, 'stroke-width': series.width, 'stroke-dasharray': dash}));
  root.append(svg('path', {d: SHAPES[shape], transform: 'translate(22,8)', fill: open ? 'var(--page)' : color, stroke: color, 'stroke-width': 1.2}));
  if (dot) root.append(svg('circle', {cx: 22, cy: 8, r: 1.3, fill: open ? color : 'var(--page)'}));
  return root;
}

// Pictures of the panels with Plotly: lines over an axis, scores in a list, scores against speed.
// What the title of a panel does not say of it.
const panelContext = panel => [...Object.values(panel.facets).filter(v => !panel.title.includes(v)), panel.context].filter(Boolean).join('; ');

class Chart {
  constructor(report, panel) {
    Object.assign(this, {report, panel});
    const context = panelContext(panel);
    this.plot = element('div', {class: LISTS.has(panel.kind) ? 'chart short' : 'chart', tabindex: 0, role: 'img', 'aria-label': `${panel.title}; ${context}. Arrow keys step through the points, plus and minus zoom, 0 shows all; the table below holds them.`,
      onkeydown: e => this.step(e)});
    this.detail = element('p', {class: 'detail', 'aria-live': 'polite'}, 'Point at a mark for its interval, samples and command.');
    this.root = element('figure', {}, element('figcaption', {}, panel.title, element('span', {class: 'context'}, context)), this.plot, this.detail);
    this.at = [0, -1];
  }
  hides(facets) { return Object.entries(this.panel.facets).some(([name, value]) => facets.has(`${name}=${value}`)); }
  get lines() { return this.panel.lines.filter(l => l.series === null || this.report.shows(l.series)); }
  // What is drawn in full, the rest in grey behind: all, the best, or a group of families with exact attention.
  get inFull() {
    const {lines, report} = this, focus = report.state.focus, is = l => l.series === null || report.series[l.series].exact;
    const rest = lines.filter(l => !is(l));
    if (this.list || focus === 'all' || focus === '' && rest.length <= MOST) return new Set(lines);
    const groups = rest.filter(l => report.series[l.series].group === focus);
    const ranked = () => rest.map(l => [this.merit(l), l]).sort(([a], [b]) => { const i = a.findIndex((v, k) => v !== b[k]); return i < 0 ? 0 : b[i] - a[i]; });
    return new Set([...lines.filter(is), ...(focus && focus !== BEST ? groups : ranked().slice(0, MOST).map(([, l]) => l))]);
  }
  merit(line) { // on the front or not, how far it reaches, how good it is there
    const p = line.points.at(-1), {y, front} = this.panel;
    if (!p || line.hollow) return [0, -Infinity, 0];
    const leads = (front || []).some(f => f[0] === p[0] && f[1] === p[1]);
    return [Number(leads), line.points.length > 1 ? p[0] : 0, y.kind === 'score' && !y.down ? p[1] : -p[1]];
  }
  get list() { return LISTS.has(this.panel.kind); }
  label(line) { return (line.name || this.report.series[line.series].label) + (line.mark || ''); }
  get relative() { return this.base === EXACT ? this.panel.lines.some(l => l.relative && l.relative.some(r => r.length)) : Boolean(this.divisor); }
  get base() { return this.report.state.relative; } // '', EXACT or the label of a series
  // The points of the chosen series, which ratios to it divide by. Ratios to exact attention come with the data.
  get divisor() { return this.base ? this.panel.lines.find(l => l.relative && l.series !== null && this.report.series[l.series].label === this.base) : undefined; }
  get baseName() { return this.base === EXACT ? 'exact attention' : this.base; }
  points(line) { // [x, y, low, high, cells], relative where that is chosen
    if (!this.relative) return line.points;
    if (this.base === EXACT) return line.points.map((p, i) => line.relative[i].length ? [p[0], ...line.relative[i], p[4]] : null).filter(Boolean);
    const at = new Map(this.divisor.points.map(p => [p[0], p]));
    return line.points.filter(p => at.has(p[0])).map(p => {
      const by = at.get(p[0]), sure = p[2] !== null && by[2] !== null && line !== this.divisor;
      return [p[0], p[1] / by[1], sure ? p[2] / by[3] : null, sure ? p[3] / by[2] : null, [...p[4], ...by[4]]];
    });
  }
  describe(line, p) {
    if (line.parts) return `${this.label(line)}: ${this.panel.parts.map((name, i) => [line.parts[i], name]).filter(part => part[0] > 0).sort((a, b) => b[0] - a[0]).map(([v, name]) => `${name} ${told(v, 'share')}`).join(', ')}`;
    const {x, y} = this.panel, {list} = this, kind = list ? x.kind : this.relative ? 'ratio' : y.kind;
    const value = list ? p[0] : p[1];
    const what = this.panel.ends || (this.relative && this.base !== EXACT ? 'at least 90\u202f%' : '95\u202f%'); // of two 95 % intervals, end by end
    const sure = p[2] === null || p[2] === value && p[3] === value ? '' : ` (${what}: ${told(p[2], kind)} to ${told(p[3], kind)})`;
    const where = list ? '' : `, ${x.title.replace(/\s\(.*/s, '')} ${told(p[0], x.kind)}${x.names ? ` (${x.names[p[0] - 1]})` : ''}`;
    return `${this.label(line)}${where}: ${told(value, kind)}${this.relative ? ` of ${this.baseName}` : ''}${sure}`;
  }
  show(line, p) {
    const {report} = this, cell = p[4][0];
    this.detail.replaceChildren(this.describe(line, p) + '. ');
    if (cell === undefined) return;
    const samples = report.samplesText(cell);
    if (samples) this.detail.append(samples + '. ');
    this.detail.append(element('span', {class: 'command'}, report.command(cell)));
    if (p[4].length > 1) this.detail.append(` and ${p[4].length - 1} more ${p[4].length > 2 ? 'cells' : 'cell'}`);
  }
  step(event) {
    const zoom = {'+': 1 / ZOOM, '=': 1 / ZOOM, '-': ZOOM, '0': 0}[event.key];
    if (zoom !== undefined && !event.ctrlKey && !event.metaKey) {
      event.preventDefault();
      this.zoom(zoom);
      return;
    }
    const move = {ArrowRight: [0, 1], ArrowLeft: [0, -1], ArrowDown: [1, 0], ArrowUp: [-1, 0]}[event.key];
    const lines = this.lines.map(l => [l, this.points(l)]).filter(l => l[1].length);
    if (!lines.length || !move && event.key !== 'Enter') return;
    event.preventDefault();
    const line = Math.min(Math.max(this.at[0] + (move ? move[0] : 0), 0), lines.length - 1);
    const points = lines[line][1];
    const at = Math.min(Math.max(this.at[1] + (move ? move[1] : 0), 0), points.length - 1);
    this.at = [line, at];
    this.show(lines[line][0], points[at]);
    if (event.key === 'Enter') this.report.showCells(points[at][4]);
  }
  draw(width) {
    const draw = Plotly => {
      const {traces, layout} = this.picture();
      if (width) Object.assign(layout, {width, autosize: false});
      Plotly.react(this.plot, traces, layout, {displayModeBar: false, responsive: !width, doubleClick: 'reset'});
      if (!this.drawn) {
        this.plot.on('plotly_hover', e => this.pointed(e, (l, p) => this.show(l, p)));
        this.plot.on('plotly_relayout', e => this.ticked(e));
        this.plot.on('plotly_click', e => this.pointed(e, (l, p) => this.report.showCells(p[4])));
      }
      this.drawn = true;
      this.stale = false;
    };
    return window.Plotly ? draw(window.Plotly) : withPlotly().then(draw);
  }
  pointed(event, then) {
    const data = event.points[0] && event.points[0].customdata;
    if (data) then(...data);
  }
  picture() {
    const {list} = this, theme = THEMES[this.report.theme], lines = this.lines, bars = this.panel.kind === 'parts';
    const full = this.inFull, front = lines.filter(l => full.has(l)), behind = lines.filter(l => !full.has(l));
    const trace = bars ? this.bars(lines) : list ? this.scores(lines) : [...behind.map(l => this.grey(l)), ...front.map(l => this.line(l))];
    const x = list ? this.panel.x : {log: this.panel.x.kind === 'length', ...this.panel.x};
    const y = this.relative ? {title: `${this.panel.y.title}, ${this.baseName} = \u00d71`, kind: 'ratio', log: true} : this.panel.y;
    const xaxis = this.axis(x, 0, trace), yaxis = list ? this.names(lines) : this.axis(this.chosenScale(y), 1, trace);
    const at = v => ({showlegend: false, ...v});
    if (bars) Object.assign(xaxis, {range: [0, 1], tickvals: [0, 0.25, 0.5, 0.75, 1], ticktext: ['0', '25 %', '50 %', '75 %', '100 %'], fixedrange: true});
    this.whole = [[...xaxis.range], list ? null : [...yaxis.range]]; // Plotly changes its own
    const layout = {
      height: (list ? 96 + 25 * Math.max(lines.length, 1) : behind.length ? 440 : 340) + (bars ? 60 : 0), margin: {l: 62, r: 16, t: 22, b: 33 + 15 * x.title.split('\n').length}, autosize: true,
      paper_bgcolor: theme.page, plot_bgcolor: theme.page, font: {color: theme.ink, size: 12, family: 'system-ui, "DejaVu Sans", sans-serif'},
      hovermode: 'closest', dragmode: matchMedia('(pointer: coarse)').matches || bars ? false : 'zoom', showlegend: bars, barmode: 'stack', bargap: 0.25,
      legend: {orientation: 'h', y: -62 / (25 * Math.max(lines.length, 1) + 26), yanchor: 'top', traceorder: 'normal', itemclick: false, itemdoubleclick: false}, xaxis, yaxis,
      hoverlabel: {bgcolor: theme.page, bordercolor: theme.quiet, font: {color: theme.ink}, align: 'left'},
      yaxis2: {overlaying: 'y', range: [0, 1], visible: false, fixedrange: true},
    };
    return {traces: [...this.behind(xaxis, theme), ...trace, ...this.rings(front), ...this.edges(front)].map(at), layout};
  }
  chosenScale(axis) {
    const chosen = this.report.state.scale;
    return {...axis, log: chosen === 'auto' || axis.kind === 'score' && chosen === 'log' ? axis.log : chosen === 'log'};
  }
  look(line) {
    if (line.series === null) {
      const {ink} = THEMES[this.report.theme];
      return {color: ink, marker: {symbol: 'circle', color: ink, size: 8}, line: {color: ink, width: 1.4, dash: 'solid'}};
    }
    const s = this.report.series[line.series], color = this.report.color(s);
    return {color, marker: {symbol: s.symbol + (line.hollow ? '-open' : ''), color, size: 8, line: {width: 1.2, color}}, line: {color, width: s.width, dash: s.dash}};
  }
  line(line) {
    const points = this.points(line), {color, ...look} = this.look(line), several = points.length > 1 && !line.hollow;
    return {
      ...look, type: 'scatter', mode: several ? 'lines+markers' : 'markers', x: points.map(p => p[0]), y: this.heights(points),
      error_y: {type: 'data', symmetric: false, array: points.map(p => p[3] === null ? 0 : p[3] - p[1]), arrayminus: points.map(p => p[2] === null ? 0 : p[1] - p[2]), color, thickness: 1.2, width: 3},
      hoverinfo: 'text', hovertext: points.map(p => hovering(this.describe(line, p))), customdata: points.map(p => [line, p]),
    };
  }
  heights(points) {
    const {edge} = this;
    return points.map(p => edge !== null && p[1] < this.panel.y.floor ? edge : p[1]);
  }
  grey(line) {
    const points = this.points(line), color = THEMES[this.report.theme].behind;
    return {type: 'scatter', mode: points.length > 1 ? 'lines' : 'markers', x: points.map(p => p[0]), y: this.heights(points), line: {color, width: 1}, marker: {color, size: 6},
      hoverinfo: 'text', hovertext: points.map(p => hovering(this.describe(line, p))), customdata: points.map(p => [line, p])};
  }
  bars(lines) {
    const {page, ink} = THEMES[this.report.theme], colors = this.report.palette[this.report.theme];
    return this.panel.parts.map((name, i) => ({type: 'bar', orientation: 'h', name: escaped(name), showlegend: true,
      x: lines.map(l => l.parts[i]), y: lines.map((_, row) => row), hoverinfo: 'text', hovertext: lines.map(l => escaped(`${this.label(l)}: ${name} ${told(l.parts[i], 'share')}`)),
      customdata: lines.map(l => [l, l.points[0]]),
      marker: {color: colors[1 + i % (colors.length - 1)], line: {color: ink, width: 0.6}, pattern: {shape: PATTERNS[i % PATTERNS.length], fillmode: 'overlay', fgcolor: page, size: 6, solidity: 0.25}}}));
  }
  scores(lines) {
    return lines.map((line, row) => {
      const p = line.points[0], {color, marker} = this.look(line);
      return {type: 'scatter', mode: 'markers', marker: {...marker, size: 9}, x: [p[0]], y: [row],
        error_x: {type: 'data', symmetric: false, array: [p[3] === null ? 0 : p[3] - p[0]], arrayminus: [p[2] === null ? 0 : p[0] - p[2]], color, thickness: 1.6, width: 5},
        hoverinfo: 'text', hovertext: [hovering(this.describe(line, p))], customdata: [[line, p]]};
    });
  }
  names(lines) {
    return {tickvals: lines.map((_, i) => i), ticktext: lines.map(l => escaped(this.label(l))), range: [lines.length - 0.4, -0.6],
      automargin: true, fixedrange: true, zeroline: false, gridcolor: THEMES[this.report.theme].line};
  }
  // Where errors of rounding are drawn: below all others, on an edge named exact.
  get edge() {
    const floor = this.panel.y && this.panel.y.floor;
    if (!floor || !this.chosenScale(this.panel.y).log) return null;
    const values = this.lines.flatMap(l => l.points.map(p => p[1])), inexact = values.filter(v => v >= floor);
    if (inexact.length === values.length || !values.length) return null;
    const [low, high] = inexact.length ? [Math.min(...inexact), Math.max(...inexact)] : [floor, floor];
    return low / Math.max(high / low, 10) ** 0.3;
  }
  // An axis over all values drawn, with ticks in the axis' own words.
  axis(axis, which, traces) {
    const theme = THEMES[this.report.theme], error = which ? 'error_y' : 'error_x';
    const values = [...(axis.kind === 'score' ? this.panel.levels || [] : []).map(l => l[2])];
    for (const t of traces) {
      const own = which ? t.y : t.x;
      own.forEach((v, i) => values.push(v, ...(t[error] ? [v + (t[error].array[i] || 0), v - (t[error].arrayminus[i] || 0)] : [])));
    }
    if (axis.kind === 'ratio') values.push(1);
    const known = values.filter(v => Number.isFinite(v) && (!axis.log || v > 0));
    if (this.list && !which) known.push(...(this.panel.levels || []).filter(l => l[0] === 'even').map(l => l[2]));
    let [low, high] = known.length ? [Math.min(...known), Math.max(...known)] : [1, 2];
    const shown = {title: {text: escaped(axis.title).replaceAll('\n', '<br>'), standoff: 8}, fixedrange: false, gridcolor: theme.line, zeroline: false, linecolor: theme.quiet, showline: true, automargin: Boolean(which), ticks: 'outside', tickcolor: theme.quiet};
    let ticks;
    if (axis.log) {
      const room = Math.max((high / low) ** 0.06, 1.05);
      [low, high] = [low / room, high * room];
      ticks = axis.kind === 'length' ? this.lengths() : logTicks(low, high, axis.base === 2 ? 'scale' : axis.kind);
      if (ticks.length < 2 && axis.kind !== 'length') ticks = linearTicks(low, high, axis.kind).filter(t => t >= low && t <= high);
      Object.assign(shown, {type: 'log', range: [Math.log10(low), Math.log10(high)]});
    } else {
      if (axis.kind === 'score') [low, high] = [Math.min(0, low), Math.max(1.02, high)];
      else if (axis.kind === 'share') [low, high] = [0, Math.max(1, high)];
      else if (which) low = Math.min(0, low);
      const room = 0.04 * (high - low || 1);
      [low, high] = [axis.kind === 'score' || axis.kind === 'share' || which ? low : low - room, high + room];
      ticks = linearTicks(low, high, axis.kind);
      Object.assign(shown, {type: 'linear', range: [low, high]});
    }
    if (axis.names) { // the last one, and before it as many as have room
      const step = Math.ceil(axis.names.length * 68 / Math.max((this.plot.clientWidth || 420) - 80, 68));
      ticks = axis.names.map((_, i) => i + 1).filter(t => (axis.names.length - t) % step === 0);
    }
    if (axis.down) shown.range = [...shown.range].reverse();
    const edge = which && axis.floor ? this.edge : null;
    if (edge !== null) ticks = [edge, ...ticks.filter(t => t > edge * (high / low) ** 0.07)];
    return {...shown, tickvals: ticks, ticktext: ticks.map(t => t === edge ? 'exact' : axis.names ? axis.names[t - 1] : told(t, axis.kind))};
  }
  // Narrower or wider about the middle; 0: all.
  zoom(factor) {
    if (!this.drawn || this.panel.kind === 'parts') return;
    const change = {}, full = this.plot.layout;
    for (const [name, whole] of [['xaxis', this.whole[0]], ['yaxis', this.whole[1]]]) {
      if (!whole) continue;
      const [a, b] = full[name].range, middle = (a + b) / 2;
      change[`${name}.range`] = factor ? [middle + (a - middle) * factor, middle + (b - middle) * factor] : [...whole];
    }
    window.Plotly.relayout(this.plot, change);
  }
  // Ticks of the part that is shown, after a zoom: those of the whole are too few there.
  ticked(event) {
    const change = {};
    for (const [name, axis, whole] of [['xaxis', this.panel.x, this.whole[0]], ['yaxis', this.relative ? {kind: 'ratio'} : this.panel.y, this.whole[1]]]) {
      const now = this.plot.layout[name];
      if (!whole || !Object.keys(event).some(k => k.startsWith(`${name}.range`)) || axis.names) continue;
      const ends = [...now.range].sort((a, b) => a - b), log = now.type === 'log';
      const [low, high] = log ? ends.map(v => 10 ** v) : ends;
      const inside = axis.kind === 'length' ? this.lengths().filter(n => n >= low && n <= high) : [];
      const ticks = inside.length > 1 ? inside : log ? logTicks(low, high, axis.base === 2 ? 'scale' : axis.kind) : linearTicks(low, high, axis.kind);
      const shown = ticks.length > 1 || !log ? ticks : linearTicks(low, high, axis.kind).filter(t => t >= low && t <= high);
      Object.assign(change, {[`${name}.tickvals`]: shown, [`${name}.ticktext`]: shown.map(t => told(t, axis.kind))});
    }
    if (Object.keys(change).length) window.Plotly.relayout(this.plot, change);
  }
  lengths() {
    let all = [...new Set(this.lines.flatMap(l => this.points(l).map(p => p[0])))].sort((a, b) => a - b);
    while (all.length > 2 && all.length * 42 > (this.plot.clientWidth || 420) - 80) all = all.filter((_, i) => (all.length - 1 - i) % 2 === 0);
    return all;
  }
  // What lies behind the marks: levels of chance and shortcut, exact attention = 1, the Pareto front.
  behind(xaxis, theme) {
    const ends = xaxis.type === 'log' ? xaxis.range.map(v => 10 ** v) : xaxis.range;
    const [low, high] = [Math.min(...ends), Math.max(...ends)], out = [], {list} = this;
    const count = this.lines.length;
    const points = this.lines.flatMap(l => this.points(l)), share = x => xaxis.type === 'log' ? Math.log(x / low) / Math.log(high / low) : (x - low) / (high - low);
    // Its words stand at the end where the points keep further from it.
    const free = (y, is) => Math.min(...points.filter(p => is(share(p[0]))).map(p => Math.abs(p[1] - y)));
    const left = y => free(y, at => at < 0.2) >= free(y, at => at > 0.8);
    const flat = (y, dash, text) => ({type: 'scatter', mode: 'lines+text', x: [low, high], y: [y, y], text: left(y) ? [escaped(text), ''] : ['', escaped(text)], textposition: left(y) ? 'top right' : 'top left', textfont: {color: theme.quiet, size: 10}, line: {color: theme.quiet, width: 1.3, dash}, hoverinfo: 'skip'});
    this.levels.forEach(([level, text, value], i) => out.push(list
      ? {type: 'scatter', mode: 'lines+text', x: [value, value], y: [count - 0.5, -0.5], text: ['', escaped(text)], textposition: level === 'even' ? (value > (low + high) / 2 ? 'top left' : 'top right') : i % 2 ? 'top right' : 'top center', cliponaxis: false, textfont: {color: theme.quiet, size: 10}, line: {color: theme.quiet, width: 1.5, dash: DASHED[level]}, hoverinfo: 'skip'}
      : flat(value, DASHED[level], text)));
    if (this.relative) out.push(flat(1, 'dash', ''));
    if (this.panel.front && this.panel.front.length) {
      const [x, best, below, above] = [0, 1, 2, 3].map(i => this.panel.front.map(f => f[i]));
      const style = {type: 'scatter', mode: 'lines', hoverinfo: 'skip', x};
      out.push({...style, y: below, line: {width: 0}}, {...style, y: above, line: {width: 0}, fill: 'tonexty', fillcolor: theme.band}, {...style, y: best, line: {color: theme.quiet, width: 1}});
    }
    return out;
  }
  // Where two levels are drawn on each other, the first bears both names.
  get levels() {
    const [axis, range, share] = this.list ? [this.panel.x, this.whole[0], 0.08] : [this.panel.y, this.whole[1], 0.045];
    const at = axis.log ? Math.log10 : v => v, near = share * Math.abs(range[1] - range[0]);
    const all = (this.panel.levels || []).map(l => [...l]);
    all.forEach((l, i) => {
      const same = all.find((o, k) => k < i && o[1] && l[0] !== 'even' && Math.abs(at(o[2]) - at(l[2])) < near);
      if (same) [same[1], l[1]] = [`${same[1]}, ${l[1]}`, ''];
    });
    return all;
  }
  // A ring about the first point after each step of a line.
  rings(lines) {
    return lines.filter(l => (l.steps || []).length).map(l => {
      const at = this.points(l).filter(p => l.steps.includes(p[0])), {color} = this.look(l);
      return {type: 'scatter', mode: 'markers', x: at.map(p => p[0]), y: at.map(p => p[1]), marker: {symbol: 'circle-open', size: 17, color, line: {width: 2}}, hoverinfo: 'skip'};
    });
  }
  // At the upper edge a cross for each cell that failed.
  edges(lines) {
    const held = new Set(lines.map(l => l.series)), out = [], dimmed = lines.length < this.lines.length;
    const shown = s => this.report.shows(s) && (!dimmed || held.has(s));
    const rows = [...new Set((this.panel.failed || []).map(f => f[0]).filter(shown))];
    for (const [s, x, status] of (this.panel.failed || []).filter(f => shown(f[0]) && f[1] !== null)) {
      const series = this.report.series[s], color = this.report.color(series);
      out.push({type: 'scatter', mode: 'markers', yaxis: 'y2', x: [x], y: [0.96 - 0.06 * rows.indexOf(s)], marker: {symbol: 'x', size: 9, color}, hoverinfo: 'text', hovertext: [escaped(`${series.label} at ${x}: ${status}`)], cliponaxis: false});
    }
    return out;
  }
}
