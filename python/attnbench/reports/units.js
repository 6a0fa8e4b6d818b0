// Numbers in words, as plots/rows/units.py writes them; ticks; small builders of elements.
const digits = v => String(Number(Number(v).toPrecision(3)));
const UNITS = {
  seconds: [[' s', 1], [' ms', 1e-3], [' \u00b5s', 1e-6], [' ns', 1e-9]],
  bytes: [[' GiB', 2 ** 30], [' MiB', 2 ** 20], [' KiB', 2 ** 10], [' B', 1]],
  thousands: [['P', 1e15], ['T', 1e12], ['G', 1e9], ['M', 1e6], ['k', 1e3], ['', 1]],
};
function inUnits(value, kind) {
  const units = UNITS[kind];
  const [suffix, size] = units.find(u => Math.abs(value) >= u[1] * 0.9995) || units[units.length - 1];
  return digits(value / size) + suffix;
}
const TEXTS = {
  seconds: v => inUnits(v, 'seconds'),
  bytes: v => inUnits(v, 'bytes'),
  ratio: v => '\u00d7' + (v >= 100 ? Math.round(v).toLocaleString('en') : digits(v)),
  share: v => Number((100 * v).toFixed(1)) + ' %',
  score: v => Math.abs(v) < 10 ? String(Number(v.toFixed(3))) : digits(v),
  length: n => n >= 1024 && n % 1024 === 0 ? n / 1024 + 'k' : String(n),
  number: v => Math.abs(v) >= 1e5 ? inUnits(v, 'thousands') : Number.isInteger(v) ? String(v) : digits(v),
};
const told = (value, kind) => value === null || value === undefined || value === '' ? '' : (TEXTS[kind] || String)(value);

// Ticks of a logarithmic axis: powers of two, or decades, with 2 and 5 between where there are few decades.
function logTicks(low, high, kind) {
  const base = kind === 'bytes' || kind === 'scale' ? 2 : 10;
  const span = Math.log(high / low) / Math.log(base);
  const steps = base === 10 && span < 0.8 ? [1, 1.5, 2, 3, 4, 5, 7] : base === 10 && span < 2.5 ? [1, 2, 5] : [1];
  const stride = Math.max(1, Math.ceil(span / 8));
  const out = [];
  for (let p = Math.floor(Math.log(low) / Math.log(base)); base ** p <= high; ++p)
    for (const s of steps) if (base ** p * s >= low && base ** p * s <= high && p % stride === 0) out.push(base ** p * s);
  return out;
}
function linearTicks(low, high, kind) {
  if (kind === 'bytes') { // round in the unit that they are written in
    const [, size] = UNITS.bytes.find(u => high >= u[1]) || UNITS.bytes[3];
    return linearTicks(low / size, high / size).map(t => t * size);
  }
  const raw = (high - low) / 5 || 1, size = 10 ** Math.floor(Math.log10(raw));
  const step = size * [1, 2, 5, 10].find(s => s * size >= raw);
  const out = [];
  for (let k = Math.ceil(low / step); k * step <= high * 1.0001; ++k) out.push(Number((k * step).toPrecision(12)));
  return out;
}

// An element with text and attributes; texts never become markup.
function element(name, attributes = {}, ...children) {
  const made = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) {
    if (key.startsWith('on')) made.addEventListener(key.slice(2), value);
    else if (value === true) made.setAttribute(key, '');
    else if (value !== false && value !== null && value !== undefined) made.setAttribute(key, value);
  }
  made.append(...children.filter(c => c !== null && c !== undefined));
  return made;
}
const svg = (name, attributes) => {
  const made = document.createElementNS('http://www.w3.org/2000/svg', name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  return made;
};
function say(text) { document.getElementById('status').textContent = text; }
async function copy(text, what) {
  try {
    await navigator.clipboard.writeText(text);
  } catch {
    const area = element('textarea');
    area.value = text;
    (document.querySelector('dialog[open]') || document.body).append(area);
    area.select();
    document.execCommand('copy');
    area.remove();
  }
  say(`${what} copied`);
}
