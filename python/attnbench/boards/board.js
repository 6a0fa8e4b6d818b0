// The board: filters, whose state is the URL's fragment; tables of numbers; groups of Nemenyi's test; where a number comes from.
// A number's fields, in the order of data.py.
const FIELDS = ['measure', 'set', 'protocol', 'file', 'variant', 'family', 'mode', 'causal', 'length', 'task', 'setting', 'machine', 'value', 'low', 'high', 'a', 'b', 'marks', 'member'];
const TEXTUAL = ['set', 'protocol', 'file', 'variant', 'family', 'mode', 'task', 'setting', 'machine', 'member'];
const CHOICES = [['set', 'Instruction set'], ['protocol', 'Protocol'], ['mode', 'Mode'], ['causal', 'Mask'], ['length', 'Length'], ['task', 'Task'], ['family', 'Family'], ['state', 'Verification']];
const FIXED = new Set(['set', 'protocol']); // always one value: what differs in them never stands in one table
const PRINTED = 2000;
const WHAT = {speed: 'Time over that of exact attention', scores: 'Score', memory: 'Peak memory'};
const TABLES = [
  ['speed', 'Times as ratios to exact attention', [['variant', 'text'], ['ratio', 'ratio', 'value'], ['low', 'ratio'], ['high', 'ratio'], ['mode', 'text', 'modeText'], ['mask', 'text'], ['length', 'length'], ['setting', 'text'], ['machine', 'text']]],
  ['scores', 'Scores over seeds', [['variant', 'text'], ['score', 'score', 'value'], ['low', 'score'], ['high', 'score'], ['best without attention', 'score', 'a'], ['seeds', 'number', 'b'], ['task', 'text', 'setting'], ['mask', 'text']]],
  ['memory', 'Peak memory and state', [['variant', 'text'], ['peak', 'bytes', 'value'], ['of exact attention', 'ratio', 'a'], ['state', 'bytes', 'b'], ['mode', 'text', 'modeText'], ['mask', 'text'], ['length', 'length'], ['setting', 'text']]],
];
const COMMON = [['family', 'text'], ['verification', 'text', 'state'], ['archive', 'text', 'file'], ['marks', 'text', 'mark'], ['cell', 'cells', 'index']];

class Board {
  constructor(data) {
    Object.assign(this, data);
    this.numbers = data.numbers.map((line, index) => {
      const n = {index: [index], cells: line.slice(FIELDS.length).map(i => this.texts[i])};
      FIELDS.forEach((name, i) => { n[name] = TEXTUAL.includes(name) ? this.texts[line[i]] : line[i]; });
      n.bundle = this.bundles[n.file];
      n.state = n.bundle.state;
      n.mask = n.causal ? 'causal' : 'not causal';
      n.causal = n.mask;
      n.modeText = this.word('mode', n.mode);
      n.mark = n.value === null ? ` ${n.marks}${n.bundle.mark}` : n.marks + n.bundle.mark;
      return n;
    });
    this.cells = {id: this.numbers.map(n => n.cells[0])};
    this.series = [];
    this.state = this.read();
    this.build();
    this.renew();
    addEventListener('hashchange', () => { if (location.hash.length > 1 && !location.hash.includes('=')) return; this.state = this.read(); this.renew(); });
    addEventListener('beforeprint', () => this.tables.forEach(t => { t.limit = PRINTED; t.renew(); }));
    addEventListener('afterprint', () => this.tables.forEach(t => { t.limit = SHOWN; t.renew(); }));
  }

  // The view: #set=…&protocol=…&mode=…&causal=…&length=…&task=…&family=…&state=…&statement=TEXT&sort=TABLE:COLUMN:1&filter=TABLE:TEXT
  read() {
    const given = new URLSearchParams(location.hash.slice(1));
    const split = v => { const i = v.indexOf(':'); return [v.slice(0, i), v.slice(i + 1)]; };
    const state = {hidden: new Set(), statement: given.get('statement') || ''};
    CHOICES.forEach(([name]) => { state[name] = given.get(name) || ''; });
    state.sort = Object.fromEntries(given.getAll('sort').map(split).map(([t, v]) => [t, v.split(':').map(Number)]).filter(([, v]) => v.length === 2 && v.every(Number.isInteger)));
    state.filter = Object.fromEntries(given.getAll('filter').map(split));
    return state;
  }
  fragment() {
    const s = this.state, out = new URLSearchParams();
    CHOICES.forEach(([name]) => s[name] && out.set(name, s[name]));
    if (s.statement) out.set('statement', s.statement);
    Object.entries(s.sort).forEach(([t, v]) => out.append('sort', `${t}:${v.join(':')}`));
    Object.entries(s.filter).forEach(([t, v]) => v && out.append('filter', `${t}:${v}`));
    return out.toString();
  }
  keep() {
    const fragment = this.fragment();
    history.replaceState(null, '', fragment ? '#' + fragment : location.pathname + location.search);
  }

  // What can be chosen: of the protocol those of the instruction set, of the others those of both.
  among(name) { return name === 'set' ? this.numbers : this.numbers.filter(n => n.set === this.state.set && (name === 'protocol' || n.protocol === this.state.protocol)); }
  values(name) {
    const counts = new Map();
    this.among(name).forEach(n => { const v = n[name]; if (v !== '' && v !== null) counts.set(String(v), (counts.get(String(v)) || 0) + 1); });
    return [...counts].sort((a, b) => FIXED.has(name) && b[1] - a[1] || a[0].localeCompare(b[0], 'en', {numeric: true})).map(([v]) => v);
  }
  settle() { // a choice that is not there, as in an old link, is none
    for (const [name] of CHOICES) {
      const known = this.values(name);
      if (!known.includes(this.state[name])) this.state[name] = FIXED.has(name) ? known[0] || '' : '';
    }
  }
  shows(n) {
    const s = this.state, words = s.statement.toLowerCase().split(/\s+/).filter(Boolean);
    return CHOICES.every(([name]) => !s[name] || n[name] === '' || n[name] === null || String(n[name]) === s[name]) && words.every(w => n.bundle.statement.toLowerCase().includes(w));
  }

  build() {
    this.tables = TABLES.filter(([measure]) => this.numbers.some(n => n.measure === measure)).map(([measure, title, own]) => {
      const named = [...own, ...COMMON].map(([head, kind, field]) => ({title: head, kind, field: field || head}));
      const opens = named.length - 1, mark = named.length - 2;
      named.forEach(c => { if (c.field === 'value') Object.assign(c, {opens, mark}); });
      const table = new Table(this, {id: measure, title, columns: named, rows: []});
      table.all = this.numbers.filter(n => n.measure === measure);
      document.getElementById(`table-${measure}`).append(table.root);
      return table;
    });
    TABLES.forEach(([measure]) => { document.getElementById(`part-${measure}`).hidden = !this.tables.some(t => t.id === measure); });
    const form = document.getElementById('choices');
    this.controls = CHOICES.map(([name, label]) => {
      const select = element('select', {id: `choose-${name}`, onchange: () => this.choose(name, select.value)});
      form.append(element('div', {}, element('label', {for: `choose-${name}`}, label), select));
      return [name, select];
    });
    this.search = element('input', {type: 'search', id: 'choose-statement', oninput: () => this.choose('statement', this.search.value)});
    form.append(element('div', {}, element('label', {for: 'choose-statement'}, 'Words of the statement'), this.search));
    form.append(element('div', {class: 'reset'}, element('button', {type: 'button', onclick: () => this.reset()}, 'Show all')));
    form.addEventListener('submit', e => e.preventDefault());
    if (innerWidth <= 600) document.getElementById('filters').open = false;
    document.querySelectorAll('nav a[href^="#"], a.skip').forEach(a => a.addEventListener('click', e => { // the fragment is the view's
      e.preventDefault();
      const target = document.querySelector(a.getAttribute('href'));
      target.tabIndex = -1;
      target.focus();
      target.scrollIntoView();
    }));
    document.getElementById('dialog-close').addEventListener('click', () => document.getElementById('dialog').close());
  }
  word(name, value) { return name === 'length' ? told(Number(value), 'length') : name === 'mode' && Object.hasOwn(this.modes, value) ? this.modes[value] : value; }
  choose(name, value) {
    this.state[name] = value;
    if (name === 'set') this.state.protocol = '';
    this.renew();
    this.keep();
  }
  reset() {
    history.replaceState(null, '', location.pathname + location.search);
    this.state = this.read();
    this.renew();
  }
  renew() {
    this.settle();
    for (const [name, select] of this.controls) {
      const known = this.values(name), options = FIXED.has(name) ? known : ['', ...known];
      select.replaceChildren(...options.map(v => element('option', {value: v}, v === '' ? 'all' : this.word(name, v))));
      select.value = this.state[name];
      select.disabled = known.length < 2 && !this.state[name];
    }
    if (this.search.value !== this.state.statement) this.search.value = this.state.statement;
    const files = new Set();
    for (const table of this.tables) {
      const shown = table.all.filter(n => this.shows(n));
      shown.forEach(n => files.add(n.file));
      table.rows = shown.map(n => table.columns.map(c => n[c.field]));
      table.search = null;
      table.limit = SHOWN;
      table.renew();
    }
    this.groups();
    document.querySelectorAll('#bundles tbody tr').forEach(row => { row.hidden = !files.has(row.dataset.file); });
    const chosen = CHOICES.filter(([name]) => this.state[name]).map(([name, label]) => `${label.toLowerCase()} ${this.word(name, this.state[name])}`);
    if (this.state.statement) chosen.push(`statement with '${this.state.statement}'`);
    document.getElementById('chosen').textContent = `Shown: ${chosen.join('; ')}. ${files.size.toLocaleString('en')} ${files.size === 1 ? 'archive' : 'archives'}.`;
  }

  // Groups are made before the page: the filters choose among them.
  groups() {
    const s = this.state, place = document.getElementById('blocks');
    const shown = this.blocks.filter(b => b.set === s.set && b.protocol === s.protocol && b.verified === (s.state === 'verified') &&
      (b.measure === 'scores' || ((!s.mode || s.mode === b.mode) && (!s.causal || (s.causal === 'causal') === b.causal) && (!s.length || String(b.length) === s.length))));
    place.replaceChildren(...shown.map((b, i) => this.block(b, i === 0)));
    const others = ['unverified', 'disagrees', 'not comparable'].includes(s.state) || s.family || s.task || s.statement;
    document.getElementById('blocks-note').textContent = (shown.length ? '' : 'Nothing here has three judges that share two variants. ') +
      (others && shown.length ? 'Filters of task, family and statement, and of a verification other than "verified", change the tables below, not these groups.' : '');
  }
  block(b, open) {
    const speed = b.measure === 'speed', judges = speed ? 'machines' : 'tasks', letters = b.lines[0][2].map((_, i) => letter(i));
    const what = speed ? `${this.word('mode', b.mode)}, ${b.causal ? 'causal' : 'not causal'}, length ${told(b.length, 'length')}; ${b.setting}` : b.setting;
    const groups = letters.length === 1 ? 'one group: nothing is told apart' : `${letters.length} groups`;
    const mark = b.unverified ? '\u00b0' : '';
    const over = speed ? ['Median ratio', '95\u202f% interval', 'Faster on'] : [];
    const head = element('tr', {}, ...['Variant', 'Mean rank', ...letters.map(l => `Group ${l}`), ...over].map(t => element('th', {scope: 'col'}, t)));
    const lines = b.lines.map(([label, mean, members, ratio, low, high, faster]) => element('tr', {}, element('th', {scope: 'row'}, label), element('td', {class: 'number'}, mean.toFixed(2) + mark),
      ...members.map((m, i) => element('td', {class: m ? 'member in' : 'member'}, m ? letters[i] : '')),
      ...(speed ? [(told(ratio, 'ratio') || 'too long') + mark, low === null ? '' : `${told(low, 'ratio')} to ${told(high, 'ratio') || 'no end'}`, `${faster} of ${b.judges}`] : []).map(t => element('td', {class: 'number'}, t))));
    const notes = [`Two mean ranks that are ${digits(b.difference)} or more apart are told apart at 5 %.`];
    if (b.dropped.length) notes.push(`Left out, since too few ${judges} have them: ${b.dropped.join(', ')}.`);
    if (b.unverified) notes.push(`\u00b0: ${b.unverified} of the archives behind these ranks ${b.unverified === 1 ? 'is' : 'are'} unverified.`);
    const made = element('details', {class: 'block'}, element('summary', {}, `${what}: ${b.lines.length} variants on ${b.judges} ${judges}, ${groups}${mark}`),
      element('div', {class: 'wide', role: 'region', tabindex: 0, 'aria-label': `Groups: ${what}`}, element('table', {}, element('thead', {}, head), element('tbody', {}, ...lines))), element('p', {class: 'quiet'}, notes.join(' ')));
    made.open = open;
    return made;
  }

  showCells([index]) {
    const n = this.numbers[index], kind = {speed: 'ratio', scores: 'score', memory: 'bytes'}[n.measure];
    const value = (n.value === null ? '' : told(n.value, kind)) + n.mark + (n.low === null ? '' : ` (95\u202f%: ${told(n.low, kind)} to ${told(n.high, kind)})`);
    const rows = n.member.split('/').pop();
    const commands = [`unzip -p ${n.file} ${n.member} > ${rows}`, ...n.cells.map(c => `attnbench repro ${rows} ${c}`)].join('\n');
    const page = element('a', {href: `${n.bundle.page}#c-${n.cells[0]}`}, n.file);
    const facts = [[WHAT[n.measure], value], ['Variant', n.variant], ['Setting', [n.modeText, n.mask, n.length === null ? '' : `length ${told(n.length, 'length')}`, n.setting].filter(Boolean).join(', ')],
      ['Machine', n.machine], ['Instruction set, protocol', `${n.set}, ${n.protocol}`], [n.cells.length > 1 ? 'Cells' : 'Cell', n.cells.join(' ')],
      ['Archive', page], ['SHA-256', n.bundle.digest], ['Signature', n.bundle.signed], ['Verification', `${n.state}${n.bundle.mark}: ${n.bundle.words}`]];
    const anew = n.cells.filter(c => n.bundle.anew[c]).map(c => `${c}: ${n.bundle.anew[c]}`);
    if (anew.length) facts.push(['Measured anew', anew.join('; ')]);
    document.getElementById('dialog-text').replaceChildren(element('dl', {}, ...facts.flatMap(([k, v]) => [element('dt', {}, k), element('dd', {}, v)])),
      element('p', {}, 'To measure it again, beside the archive; with --print the line of ', element('code', {}, 'attnbench run'), ' is printed and nothing is measured.', n.bundle.sources ? ' This archive brings sources of its own variants, a stranger\'s code: repro needs it by --plugin.' : ''),
      element('pre', {tabindex: 0, 'aria-label': 'Commands'}, commands), element('button', {type: 'button', onclick: () => copy(commands, 'Commands')}, 'Copy commands'));
    document.getElementById('dialog').showModal();
    document.getElementById('dialog-title').focus();
  }
}
function letter(i) { return (i >= 26 ? letter(Math.floor(i / 26) - 1) : '') + String.fromCharCode(97 + i % 26); }
new Board(JSON.parse(document.getElementById('data').textContent));
