// The page: the choice of what is shown, kept in the URL's fragment; sections; details of cells.
class Report {
  constructor(data) {
    Object.assign(this, data);
    this.system = matchMedia('(prefers-color-scheme: dark)');
    this.state = this.read();
    this.charts = [];
    this.tables = [];
    this.legends = [];
    this.build();
    this.watch = new IntersectionObserver(seen => seen.forEach(s => s.isIntersecting && this.near(s.target)), {rootMargin: '300px'});
    this.charts.forEach(c => this.watch.observe(c.plot));
    this.renew();
    addEventListener('hashchange', () => { this.state = this.read(); this.renew(); this.go(); });
    this.system.addEventListener('change', () => this.renew());
    addEventListener('beforeprint', () => this.print(true));
    addEventListener('afterprint', () => this.print(false));
    this.go();
    (window.requestIdleCallback || (f => setTimeout(f, 500)))(() => withPlotly()); // printing cannot wait for it
  }
  get groups() { return [...new Set(this.series.filter(s => !s.exact).map(s => s.group).filter(Boolean))]; }
  get theme() {
    if (this.printing) return 'light';
    return this.state.theme === 'auto' ? (this.system.matches ? 'dark' : 'light') : this.state.theme;
  }
  color(series) { return this.palette[this.theme][series.color]; }
  shows(series) { return !this.state.hidden.has(this.series[series].label); }
  near(plot) {
    const chart = this.charts.find(c => c.plot === plot);
    chart.near = true;
    if (!chart.drawn || chart.stale) chart.draw();
  }

  // The view: #hide=LABEL&without=FACET=VALUE&y=linear&relative=exact&focus=GROUP&theme=dark&sort=TABLE:COLUMN:1&filter=TABLE:TEXT&at=SECTION
  read() {
    const text = location.hash.slice(1), given = new URLSearchParams(text.includes('=') ? text : text && `at=${text}`);
    const split = v => { const i = v.indexOf(':'); return [v.slice(0, i), v.slice(i + 1)]; };
    const one = (name, known) => known.includes(given.get(name)) ? given.get(name) : known[0];
    return {
      hidden: new Set(given.getAll('hide')), without: new Set(given.getAll('without')), relative: one('relative', ['', EXACT, ...this.series.map(s => s.label)]),
      scale: one('y', ['auto', 'log', 'linear']), focus: one('focus', ['', BEST, 'all', ...this.groups]), theme: one('theme', ['auto', 'light', 'dark']), at: given.get('at') || '',
      sort: Object.fromEntries(given.getAll('sort').map(split).map(([t, v]) => [t, v.split(':').map(Number)]).filter(([, v]) => v.length === 2 && v.every(Number.isInteger))),
      filter: Object.fromEntries(given.getAll('filter').map(split)),
    };
  }
  fragment() {
    const s = this.state, out = new URLSearchParams();
    s.hidden.forEach(v => out.append('hide', v));
    s.without.forEach(v => out.append('without', v));
    if (s.scale !== 'auto') out.set('y', s.scale);
    if (s.relative) out.set('relative', s.relative);
    if (s.focus) out.set('focus', s.focus);
    if (s.theme !== 'auto') out.set('theme', s.theme);
    Object.entries(s.sort).forEach(([t, v]) => out.append('sort', `${t}:${v.join(':')}`));
    Object.entries(s.filter).forEach(([t, v]) => v && out.append('filter', `${t}:${v}`));
    if (s.at) out.set('at', s.at);
    return out.toString();
  }
  keep() { history.replaceState(null, '', '#' + this.fragment()); }
  go() {
    const target = this.state.at && document.getElementById(this.state.at);
    if (target) target.scrollIntoView();
  }

  build() {
    const main = document.getElementById('main'), entries = [['overview', 'Overview'], ['summary', 'Summary']].filter(([id]) => document.getElementById(id));
    if (this.advice) {
      const {root} = new Advice(this.advice);
      document.getElementById('summary').after(root);
      entries.push([root.id, 'Which variant to take']);
    }
    for (const section of this.sections) {
      const charts = section.panels.map(p => new Chart(this, p)), tables = [...section.tables];
      if (charts.length && (charts.some(c => !c.list) || !tables.length) && section.id !== 'tradeoff') tables.push(...this.points(section));
      if (section.id === 'sources') tables.push(this.rows());
      const legend = element('ul', {class: 'legend', 'aria-label': `${section.title}: key`});
      const made = tables.map(t => new Table(this, t));
      const place = this.charts.length || document.getElementById('overview') ? null : document.getElementById('summary'); // a picture first
      main.insertBefore(element('section', {id: section.id, 'aria-labelledby': `${section.id}-title`}, element('h2', {id: `${section.id}-title`}, section.title),
        element('p', {}, section.lead), charts.length ? legend : null, charts.length ? element('div', {class: 'panels'}, ...charts.map(c => c.root)) : null,
        section.note ? element('p', {class: 'quiet'}, section.note) : null, ...made.map(t => t.root)), charts.length ? place : null);
      if (charts.length) this.legends.push({legend, charts});
      this.charts.push(...charts);
      this.tables.push(...made);
      entries.push([section.id, section.title]);
    }
    document.getElementById('nav').append(element('ul', {}, ...entries.map(([id, title]) => element('li', {}, element('a', {href: `#at=${id}`, onclick: e => {
      e.preventDefault();
      this.state.at = id;
      this.keep();
      this.go();
    }}, title)))));
    this.controls();
    document.getElementById('dialog-close').addEventListener('click', () => document.getElementById('dialog').close());
  }
  points(section) { // a table for each pair of axes, whose names and units are its heads
    const pairs = new Map(), key = p => JSON.stringify([p.x.title, p.x.kind, p.y.title, p.y.kind]);
    section.panels.forEach(p => pairs.set(key(p), [...(pairs.get(key(p)) || []), p]));
    return [...pairs.values()].map((panels, i) => {
      const {x, y} = panels[0], lines = panels.flatMap(p => p.lines), ratios = lines.some(l => l.relative), named = lines.some(l => l.name), list = y.kind === 'series', kind = list ? x.kind : y.kind; // a list has no height
      const columns = [['panel', 'text'], ['variant', named ? 'text' : 'series'], [x.title, x.kind], ...(list ? [] : [[y.title, y.kind]]), ['low', kind], ['high', kind], ...(ratios ? [['of exact attention', 'ratio'], ['ratio low', 'ratio'], ['ratio high', 'ratio']] : []), ['cells', 'cells']];
      const rows = panels.flatMap(p => p.lines.flatMap(l => l.points.map((v, i) => [[p.title, panelContext(p)].filter(Boolean).join('; '), named ? l.name || this.series[l.series].label : l.series, ...v.slice(0, 4).filter((_, k) => !list || k !== 1), ...(ratios ? [0, 1, 2].map(k => l.relative[i][k] ?? null) : []), v[4]])));
      const told = pairs.size > 1 ? `, ${list ? '' : `${y.title} by `}${x.title}` : '';
      return {id: `${section.id}-points${i ? `-${i + 1}` : ''}`, title: `${section.title}: points${told}`, columns: columns.map(([title, kind]) => ({title, kind})), rows, closed: true};
    });
  }
  rows() {
    const c = this.cells, titles = [['cell', 'cells'], ['measure', 'text'], ['status', 'text'], ['variant', 'series'], ['parameters', 'text'], ['task', 'text'], ['length', 'number'], ['axes', 'text'], ['value', 'number'], ['low', 'number'], ['high', 'number'], ['noisy', 'text'], ['file', 'text'], ['command', 'text']];
    const rows = (c.id || []).map((_, i) => [[i], this.measures[c.measure[i]], this.statuses[c.status[i]], c.series[i], this.parameters(i), this.texts[c.task[i]], c.length[i], this.texts[c.axes[i]], c.value[i], c.low[i], c.high[i], this.texts[c.noisy[i]], this.files[c.run[i]], this.command(i)]);
    return {id: 'rows', title: 'All rows', columns: titles.map(([title, kind]) => ({title, kind})), rows, closed: true};
  }
  parameters(cell) { return Object.entries(this.series[this.cells.series[cell]].params).map(([k, v]) => `${k}=${v}`).join(' '); }
  command(cell) { return `${this.program} repro ${word(this.files[this.cells.run[cell]])} ${this.cells.id[cell]}`; }
  samplesText(cell) {
    const c = this.cells, samples = c.samples[cell];
    if (!samples.length) return '';
    const visits = this.texts[c.visits[cell]];
    return `${samples.length} samples${visits.includes(',') ? ` in visits of ${visits}` : ''}: ${samples.map(s => told(s * this.sample_unit * c.value[cell], 'seconds')).join(', ')}`;
  }
  showCells(cells) {
    const c = this.cells, kinds = {speed: 'seconds', memory: 'bytes', accuracy: 'score', fidelity: 'number', reach: 'number'};
    const shown = cells.slice(0, 30).map(i => {
      const measure = this.measures[c.measure[i]], kind = kinds[measure], status = this.statuses[c.status[i]];
      const value = status === 'ok' ? told(c.value[i], kind) + (c.low[i] === null ? '' : ` (95\u202f%: ${told(c.low[i], kind)} to ${told(c.high[i], kind)})`) : `${status}: ${this.texts[c.reason[i]]}`;
      const lines = [`${measure} of ${this.series[c.series[i]].label}: ${value}`, [this.parameters(i), this.texts[c.task[i]], c.length[i] === null ? '' : `length=${c.length[i]}`, this.texts[c.axes[i]]].filter(Boolean).join(' '), this.samplesText(i), this.texts[c.noisy[i]] && `noisy: ${this.texts[c.noisy[i]]}`];
      return element('div', {class: 'cell'}, ...lines.filter(Boolean).map(l => element('div', {}, l)), element('code', {}, this.command(i)), ' ',
        element('button', {type: 'button', onclick: () => copy(this.command(i), 'Command')}, 'Copy command'));
    });
    const more = cells.length > shown.length ? [element('p', {}, `and ${cells.length - shown.length} more`)] : [];
    document.getElementById('dialog-text').replaceChildren(...shown, ...more);
    document.getElementById('dialog').showModal();
    document.getElementById('dialog-title').focus();
  }

  controls() {
    const form = document.getElementById('controls');
    form.addEventListener('submit', e => e.preventDefault());
    const families = Map.groupBy ? Map.groupBy(this.series, s => s.family) : this.series.reduce((m, s) => m.set(s.family, [...(m.get(s.family) || []), s]), new Map());
    this.boxes = [];
    const box = (text, set, key, mark) => {
      const input = element('input', {type: 'checkbox', onchange: () => this.toggle(set, [key], input.checked)});
      this.boxes.push(() => { input.checked = !this.state[set].has(key); });
      return element('label', {}, input, mark, text);
    };
    const sets = [...families].map(([family, members]) => element('fieldset', {'data-family': family}, element('legend', {}, family || 'variants', ' ',
      members.length > 1 ? element('button', {type: 'button', 'aria-label': `all or none of ${family || 'variants'}`, onclick: () => this.toggle('hidden', members.map(s => s.label), members.some(s => this.state.hidden.has(s.label)))}, 'all/none') : ''),
      ...members.map(s => box(s.label, 'hidden', s.label))));
    const everything = this.series.map(s => s.label), words = element('input', {type: 'search', id: 'only-variants', onchange: () => this.only(words.value)});
    const all = element('div', {class: 'tools'}, element('button', {type: 'button', onclick: () => this.toggle('hidden', everything, true)}, 'All variants'),
      element('button', {type: 'button', onclick: () => this.toggle('hidden', everything, false)}, 'No variant'),
      element('button', {type: 'button', onclick: () => { this.toggle('hidden', everything, false); this.toggle('hidden', this.series.filter(s => s.exact).map(s => s.label), true); }}, 'Exact attention alone'),
      element('label', {for: 'only-variants'}, 'Only those with (name, family, parameter)'), words);
    const facets = new Map();
    for (const c of this.charts) for (const [name, value] of Object.entries(c.panel.facets)) facets.set(name, new Set([...(facets.get(name) || []), value]));
    const choices = [...facets].filter(([, values]) => values.size > 1).map(([name, values]) => element('fieldset', {'data-facet': name}, element('legend', {}, name), ...[...values].map(v => box(v, 'without', `${name}=${v}`))));
    const select = (text, name, options, set) => {
      const input = element('select', {name, onchange: () => { set(input.value); this.keep(); this.renew(); }}, ...options.map(([value, title]) => element('option', {value}, title)));
      this.boxes.push(() => { input.value = this.state[name]; });
      return element('label', {}, text, input);
    };
    form.append(element('div', {class: 'choices'},
      select('Values', 'relative', [['', 'absolute'], [EXACT, 'relative to exact attention'], ...this.series.map(s => [s.label, `relative to ${s.label}`])], v => { this.state.relative = v; }),
      select('Vertical axes', 'scale', [['auto', 'by the picture'], ['log', 'logarithmic'], ['linear', 'linear']], v => { this.state.scale = v; }),
      this.series.length > MOST + 1 ? select('Lines in colour', 'focus', [['', 'chosen for each picture'], ['all', 'all'], [BEST, `the best ${MOST} of each picture`], ...this.groups.map(g => [g, g])], v => { this.state.focus = v; }) : '',
      select('Colours', 'theme', [['auto', 'as the system'], ['light', 'light'], ['dark', 'dark']], v => { this.state.theme = v; }),
      element('button', {type: 'button', onclick: () => copy(location.href, 'Link to this view')}, 'Copy link'),
      element('button', {type: 'button', onclick: () => { location.hash = ''; }}, 'Reset')),
    element('details', {id: 'choose-variants'}, element('summary', {}, 'Variants'), all, element('div', {class: 'choices'}, ...sets)),
    choices.length ? element('details', {id: 'choose-panels'}, element('summary', {}, 'Panels: mode, mask, shape, task'), element('div', {class: 'choices'}, ...choices)) : '');
  }
  only(text) { // variants that hold every word, and exact attention
    const words = text.toLowerCase().split(/\s+/).filter(Boolean), holds = s => [s.label, s.family, ...Object.entries(s.params).map(p => p.join('='))].join(' ').toLowerCase();
    this.state.hidden = new Set(this.series.filter(s => !s.exact && !words.every(w => holds(s).includes(w))).map(s => s.label));
    this.keep();
    this.renew();
  }
  toggle(set, keys, shown) {
    keys.forEach(k => shown ? this.state[set].delete(k) : this.state[set].add(k));
    this.keep();
    this.renew();
  }

  renew() { // everything, after the view changed; pictures far from the window wait
    document.documentElement.dataset.theme = this.theme;
    this.boxes.forEach(set => set());
    for (const c of this.charts) {
      c.root.hidden = c.hides(this.state.without) || (c.lines.length === 0 && c.panel.lines.length > 0);
      c.stale = true;
      c.near = c.plot.getBoundingClientRect().top < innerHeight + 300 && c.plot.getBoundingClientRect().bottom > -300;
      if (c.near && !c.root.hidden) c.draw();
      this.watch.unobserve(c.plot);
      this.watch.observe(c.plot);
    }
    this.keys();
    this.tables.forEach(t => t.renew());
  }
  keys() { // of each section: the lines that are drawn in full
    for (const {legend, charts} of this.legends) {
      const held = new Set(charts.filter(c => !c.root.hidden).flatMap(c => c.list ? [] : [...c.inFull].map(l => l.series).filter(s => s !== null)));
      const dimmed = charts.some(c => !c.root.hidden && c.inFull.size < c.lines.length);
      legend.replaceChildren(...[...held].sort((a, b) => a - b).map(s => element('li', {}, swatch(this.series[s], this.color(this.series[s])), this.series[s].label)), ...(dimmed ? [element('li', {class: 'quiet'}, 'the others are grey')] : []));
    }
  }
  print(begins) { // on paper every picture, light and narrow
    this.printing = begins;
    document.documentElement.dataset.theme = this.theme;
    this.keys();
    for (const c of this.charts) if (!c.root.hidden && (begins || c.drawn)) c.draw(begins ? 330 : 0);
  }
}
const word = text => /^[\w./@%+=:,-]+$/.test(text) ? text : `'${text.replaceAll("'", "'\\''")}'`;
new Report(JSON.parse(document.getElementById('data').textContent));
