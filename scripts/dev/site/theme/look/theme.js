// The chosen colours, before the page is painted. Storage may be refused: then the system's colours hold.
const THEMES = ['light', 'dark'];
function storedTheme() {
  try {
    return localStorage.getItem('attnbench-theme') || 'auto';
  } catch {
    return 'auto';
  }
}
function showTheme(theme) {
  if (THEMES.includes(theme)) document.documentElement.dataset.theme = theme;
  else delete document.documentElement.dataset.theme;
}
showTheme(storedTheme());
