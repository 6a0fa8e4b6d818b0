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
