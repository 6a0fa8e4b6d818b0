// Search in this browser: the index is a script beside this one, loaded when the search is first opened, so that a folder opened
// from disk is searched too. Each word must occur in an entry: [title, address, what it is of, text].
(() => {
  const MOST = 30, AROUND = 70;
  const dialog = document.getElementById('search'), words = document.getElementById('search-words');
  const found = document.getElementById('search-found'), count = document.getElementById('search-count');
  const base = document.documentElement.dataset.base;
  const own = document.currentScript.src;
  let entries;

  // Lower case without accents; _ and - part words, and a number of arXiv is found with and without the word.
  const plain = text => text.normalize('NFKD').replace(/\p{M}/gu, '').toLowerCase().replace(/arxiv:\s*/g, 'arxiv ').replace(/[_-]/g, ' ');

  function load() {
    if (entries) return;
    entries = [];
    count.textContent = 'Loading the index';
    const script = document.createElement('script');
    script.src = new URL('search-index.js', own).href;
    script.onload = () => {
      entries = window.siteIndex.map(([title, url, of, text], place) => ({title, url, of, text, place, low: plain(title), all: plain(`${title} ${text}`)}));
      show();
    };
    script.onerror = () => { count.textContent = 'The index of this site could not be loaded.'; };
    document.head.append(script);
  }

  function rank(entry, asked, all) {
    if (!all.every(w => entry.all.includes(w))) return 0;
    let points = 1;
    if (entry.low === asked) points += 100;
    else if (entry.low.startsWith(asked)) points += 40;
    else if (all.every(w => entry.low.includes(w))) points += 20;
    if (entry.of === 'variant') points += 15;
    if (entry.of === 'page') points += 2;
    return points + all.filter(w => new RegExp(`(^|\\W)${w.replace(/[\\^$.*+?()[\]{}|/]/g, '\\$&')}(\\W|$)`, 'u').test(entry.all)).length;
  }

  function part(entry, all) {
    const at = Math.max(0, ...all.map(w => entry.text.toLowerCase().indexOf(w)));
    const from = Math.max(0, at - AROUND / 2), to = from + 2 * AROUND;
    return (from ? '\u2026 ' : '') + entry.text.slice(from, to) + (to < entry.text.length ? ' \u2026' : '');
  }

  function show() {
    const asked = plain(words.value).trim(), all = asked.split(/\s+/).filter(Boolean);
    if (!entries.length) return;
    if (!all.length) {
      found.replaceChildren();
      count.textContent = '';
      return;
    }
    const ranked = entries.map(e => [rank(e, asked, all), e]).filter(([points]) => points);
    ranked.sort(([a, x], [b, y]) => b - a || x.place - y.place);
    count.textContent = ranked.length ? `${ranked.length} found` + (ranked.length > MOST ? `, the first ${MOST} are shown` : '') : 'Nothing has all of these words.';
    found.replaceChildren(...ranked.slice(0, MOST).map(([, entry]) => {
      const link = document.createElement('a'), of = document.createElement('small'), text = document.createElement('p'), line = document.createElement('li');
      link.href = `${base}/${entry.url}`;
      link.textContent = entry.title;
      of.textContent = ` ${entry.of}`;
      text.textContent = part(entry, all);
      line.append(link, of, text);
      return line;
    }));
  }

  function open() {
    if (!dialog.open) dialog.showModal();
    words.select();
    load();
    show();
  }

  function move(step) {
    const links = [...found.querySelectorAll('a')], at = links.indexOf(document.activeElement) + step;
    if (at < 0) words.focus();
    else links[Math.min(at, links.length - 1)]?.focus();
  }

  document.getElementById('search-open').addEventListener('click', open);
  words.addEventListener('input', show);
  document.addEventListener('keydown', event => {
    const typing = event.target.closest('input, select, textarea');
    if (event.key === '/' && !typing && !event.ctrlKey && !event.metaKey && !event.altKey) {
      event.preventDefault();
      open();
    }
  });
  dialog.addEventListener('keydown', event => {
    if (event.key === 'Escape') { // a browser empties the field first
      event.preventDefault();
      dialog.close();
    }
    if (event.key === 'ArrowDown' || event.key === 'ArrowUp') {
      event.preventDefault();
      move(event.key === 'ArrowDown' ? 1 : -1);
    }
    if (event.key === 'Enter' && event.target === words) {
      event.preventDefault();
      found.querySelector('a')?.click();
    }
  });
  found.addEventListener('click', event => event.target.closest('a') && dialog.close());
})();
