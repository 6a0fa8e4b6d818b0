// The header's buttons, and frames that the keyboard can scroll where their content is wider than they are.
const theme = document.getElementById('theme'), menu = document.getElementById('menu');
theme.value = THEMES.includes(storedTheme()) ? storedTheme() : 'auto';
theme.addEventListener('change', () => {
  showTheme(theme.value);
  try {
    localStorage.setItem('attnbench-theme', theme.value);
  } catch { /* holds for this page alone */ }
});
menu.addEventListener('click', () => {
  const open = document.body.classList.toggle('with-menu');
  menu.setAttribute('aria-expanded', String(open));
});
for (const id of ['theme-choice', 'menu', 'search-open']) document.getElementById(id).hidden = false;
document.body.classList.add('scripted');

function frames() {
  document.querySelectorAll('main .wide, main pre').forEach(frame => {
    const scrolls = frame.scrollWidth > frame.clientWidth;
    if (!scrolls) return ['tabindex', 'role', 'aria-label'].forEach(name => frame.removeAttribute(name));
    frame.tabIndex = 0;
    frame.setAttribute('role', 'region');
    frame.setAttribute('aria-label', frame.matches('pre') ? 'code, scrolls sideways' : 'table, scrolls sideways');
  });
}
frames();
addEventListener('resize', frames);
document.querySelectorAll('main details').forEach(d => d.addEventListener('toggle', frames));
