// Tables that sort, filter and copy. A table: {id, title, columns: [{title, kind}], rows}; its view is in `state`.
const SHOWN = 50, MORE = 500;
const NUMERIC = new Set(['number', 'seconds', 'bytes', 'ratio', 'share', 'score', 'length']);
const COPIES = {
  CSV: (heads, rows) => [heads, ...rows].map(r => r.map(csvField).join(',')).join('\r\n') + '\r\n',
  Markdown: (heads, rows) => [heads, heads.map(() => '---'), ...rows].map(r => `| ${r.map(markdownField).join(' | ')} |`).join('\n') + '\n',
  LaTeX: (heads, rows) => `\\begin{tabular}{${'l'.repeat(heads.length)}}\n\\hline\n${latexLine(heads)}\\hline\n${rows.map(latexLine).join('')}\\hline\n\\end{tabular}\n`,
};
const noFormula = text => /^[=+@]|^-(?![\d.])/.test(text) ? `'${text}` : text; // a spreadsheet would run a text of rows that begins so
const csvField = text => /[",\r\n]/.test(text) ? `"${noFormula(text).replaceAll('"', '""')}"` : noFormula(text);
const markdownField = text => text.replace(/[\\|`*_<>[\]]/g, c => '\\' + c).replace(/\s*\n\s*/g, ' ');
const LATEX = {'\\': '\\textbackslash{}', '~': '\\textasciitilde{}', '^': '\\textasciicircum{}', '\u00b1': '$\\pm$', '\u00d7': '$\\times$', '\u2013': '--', '\u00b5': '$\\mu$'};
const latexField = text => text.replace(/[\\~^\u00b1\u00d7\u2013\u00b5&%$#_{}]/g, c => LATEX[c] || '\\' + c).replace(/\s*\n\s*/g, ' ');
const latexLine = fields => fields.map(latexField).join(' & ') + ' \\\\\n';

class Table {
  constructor(report, table) {
    Object.assign(this, {report, ...table, limit: SHOWN});
    this.body = element('tbody');
    this.count = element('p', {class: 'quiet', role: 'status'});
    this.filter = element('input', {type: 'search', id: `filter-${this.id}`, oninput: () => this.choose()});
    this.heads = this.columns.map((column, i) => element('th', {scope: 'col'},
      element('button', {type: 'button', onclick: () => this.sortBy(i)}, column.title)));
    this.more = element('button', {type: 'button', class: 'more', onclick: () => { this.limit += MORE; this.fill(); }}, `Show ${MORE} more rows`);
    const scroll = element('div', {class: 'wide', role: 'region', 'aria-label': this.title, tabindex: 0},
      element('table', {}, element('thead', {}, element('tr', {}, ...this.heads)), this.body));
    const copies = Object.keys(COPIES).map(form => element('button', {type: 'button', onclick: () => copy(this.text(form), `${this.title} as ${form}`)}, `Copy as ${form}`));
    const tools = element('div', {class: 'tools'}, element('label', {for: `filter-${this.id}`}, 'Filter'), this.filter, ...copies);
    this.root = element('details', {'data-table': this.id}, element('summary', {}, element('span', {}, this.title)), tools, scroll, this.count, this.more);
    this.root.open = !this.closed;
    this.root.addEventListener('toggle', () => this.renew());
  }
  choose() {
    this.report.state.filter[this.id] = this.filter.value;
    this.report.keep();
    this.fill();
  }
  sortBy(column) {
    const now = this.report.state.sort[this.id];
    this.report.state.sort[this.id] = [column, now && now[0] === column ? -now[1] : 1];
    this.report.keep();
    this.fill();
  }
  plain(row, i) { // for searching and copying: numbers in full
    const value = row[i], kind = this.columns[i].kind;
    if (value === null || value === undefined) return '';
    if (kind === 'series') return this.report.series[value].label;
    if (kind === 'cells') return value.map(c => this.report.cells.id[c]).join(' ');
    return String(value);
  }
  compare(a, b, i) { // absent values last
    const [x, y] = NUMERIC.has(this.columns[i].kind) ? [a[i], b[i]] : [this.plain(a, i), this.plain(b, i)];
    if (x === null || x === '' || y === null || y === '') return (x === null || x === '') - (y === null || y === '') || 0;
    return (typeof x === 'number' ? x - y : x.localeCompare(y, 'en', {numeric: true})) * this.direction;
  }
  chosen() {
    const {state} = this.report;
    const words = (state.filter[this.id] || '').toLowerCase().split(/\s+/).filter(Boolean);
    const series = this.columns.map((c, i) => c.kind === 'series' ? i : -1).filter(i => i >= 0)[0];
    this.search ||= new Map();
    const text = row => {
      if (!this.search.has(row)) this.search.set(row, row.map((_, i) => this.plain(row, i)).join(' ').toLowerCase());
      return this.search.get(row);
    };
    let rows = this.rows;
    if (series !== undefined) rows = rows.filter(r => !state.hidden.has(this.report.series[r[series]].label));
    if (words.length) rows = rows.filter(r => words.every(w => text(r).includes(w)));
    const sort = state.sort[this.id];
    if (sort && sort[0] < this.columns.length) {
      this.direction = sort[1];
      rows = [...rows].sort((a, b) => this.compare(a, b, sort[0]));
    }
    return rows;
  }
  renew() { // after the view changed
    if (this.root.open) this.fill();
  }
  fill() {
    const rows = this.chosen(), shown = rows.slice(0, this.limit), sort = this.report.state.sort[this.id];
    this.filter.value = this.report.state.filter[this.id] || '';
    this.heads.forEach((head, i) => {
      if (sort && sort[0] === i) head.setAttribute('aria-sort', sort[1] > 0 ? 'ascending' : 'descending');
      else head.removeAttribute('aria-sort');
      const arrow = sort && sort[0] === i ? (sort[1] > 0 ? ' \u25b4' : ' \u25be') : '';
      head.firstChild.textContent = this.columns[i].title + arrow;
      head.style.textAlign = NUMERIC.has(this.columns[i].kind) ? 'right' : 'left';
    });
    this.body.replaceChildren(...shown.map(row => element('tr', {}, ...row.map((_, i) => this.field(row, i)))));
    this.count.textContent = `${shown.length.toLocaleString('en')} of ${rows.length.toLocaleString('en')} rows` +
      (rows.length < this.rows.length ? ` (of ${this.rows.length.toLocaleString('en')} before the choice)` : '');
    this.more.hidden = rows.length <= this.limit;
  }
  field(row, i) {
    const kind = this.columns[i].kind;
    if (kind === 'cells') {
      const cells = row[i], first = cells.length ? this.report.cells.id[cells[0]].slice(0, 8) : '';
      const more = cells.length > 1 ? ` +${cells.length - 1}` : '';
      return element('td', {class: 'cells'}, cells.length ? element('button', {type: 'button', onclick: () => this.report.showCells(cells)}, first + more) : '');
    }
    if (NUMERIC.has(kind)) return element('td', {class: 'number'}, this.number(row, i));
    const text = this.plain(row, i);
    return element('td', {class: kind !== 'text' ? kind : text.length > 40 ? 'text long' : 'text'}, text);
  }
  number(row, i) { // a column may name those of its marks and of the cells that it opens
    const {kind, mark, opens} = this.columns[i], text = told(row[i], kind) + (mark === undefined ? '' : row[mark]);
    return opens === undefined ? text : element('button', {type: 'button', class: 'opens', title: 'where this number comes from', onclick: () => this.report.showCells(row[opens])}, text);
  }
  text(form) {
    const heads = this.columns.map(c => c.title);
    return COPIES[form](heads, this.chosen().map(row => row.map((_, i) => this.plain(row, i))));
  }
}
