// The table of variants: sorts by a column, and shows those that the form asks for. The address holds both, so that a link keeps them.
(() => {
  const table = document.getElementById('catalogue'), form = document.getElementById('filter'), count = document.getElementById('count');
  if (!table) return;
  const body = table.tBodies[0], rows = [...body.rows], heads = [...table.tHead.rows[0].cells];
  let sorted = {key: '', falling: false};

  const value = (row, column) => {
    const cell = row.cells[column], text = cell.dataset.value ?? cell.textContent;
    if (!heads[column].classList.contains('number')) return text.toLowerCase();
    return /\d/.test(text) ? Number(text) : null; // what is not known stands last
  };
  const compare = column => (a, b) => {
    const x = value(a, column), y = value(b, column);
    if (x === null || y === null) return (x === null) - (y === null);
    return (typeof x === 'number' ? x - y : x.localeCompare(y, 'en')) * (sorted.falling ? -1 : 1);
  };

  function show() {
    const asked = new FormData(form), words = asked.get('words').toLowerCase().split(/\s+/).filter(Boolean), traits = asked.getAll('trait');
    const fits = row => {
      const {family, year, traits: has} = row.dataset;
      return words.every(w => row.textContent.toLowerCase().includes(w)) && (!asked.get('family') || family === asked.get('family')) &&
        (!asked.get('from') || year >= asked.get('from')) && (!asked.get('to') || (year && year <= asked.get('to'))) &&
        traits.every(t => has.split(' ').includes(t));
    };
    const column = heads.findIndex(head => head.dataset.sort === sorted.key);
    heads.forEach((head, i) => {
      if (i === column) head.setAttribute('aria-sort', sorted.falling ? 'descending' : 'ascending');
      else head.removeAttribute('aria-sort');
    });
    rows.forEach(row => { row.hidden = !fits(row); });
    body.replaceChildren(...(column < 0 ? rows : [...rows].sort(compare(column))));
    const shown = rows.filter(row => !row.hidden).length;
    count.textContent = shown === rows.length ? `All ${rows.length} variants.` : `${shown} of ${rows.length} variants.`;
  }

  function keep() {
    const kept = new URLSearchParams([...new FormData(form)].filter(([, text]) => text));
    if (sorted.key) kept.set('sort', (sorted.falling ? '-' : '') + sorted.key);
    history.replaceState(null, '', kept.size ? `#${kept}` : location.pathname + location.search);
    show();
  }

  function restore() {
    const kept = new URLSearchParams(location.hash.slice(1)), sort = kept.get('sort') || '';
    form.reset();
    for (const name of ['words', 'family', 'from', 'to']) form.elements[name].value = kept.get(name) || '';
    form.querySelectorAll('[name=trait]').forEach(box => { box.checked = kept.getAll('trait').includes(box.value); });
    sorted = {key: sort.replace(/^-/, ''), falling: sort.startsWith('-')};
    show();
  }

  heads.forEach(head => {
    const button = document.createElement('button');
    button.type = 'button';
    button.append(...head.childNodes);
    button.addEventListener('click', () => {
      sorted = {key: head.dataset.sort, falling: sorted.key === head.dataset.sort && !sorted.falling};
      keep();
    });
    head.append(button);
  });
  form.addEventListener('input', keep);
  form.addEventListener('submit', event => event.preventDefault());
  form.elements.every.addEventListener('click', () => {
    form.reset();
    sorted = {key: '', falling: false};
    keep();
  });
  addEventListener('hashchange', restore);
  form.hidden = false;
  restore();
  if (matchMedia('(max-width: 54rem)').matches) form.querySelector('details').open = form.querySelector('[name=trait]:checked') !== null;
})();
