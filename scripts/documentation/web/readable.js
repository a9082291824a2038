// What readers without a mouse or a screen need, and the theme lacks: a dialog has a name, and what can be
// scrolled can be reached by keys.
document.querySelector(".md-search").setAttribute("aria-label", "Search");
document$.subscribe(() => {
  for (const wide of document.querySelectorAll(".md-typeset__scrollwrap, .diagram")) wide.tabIndex = 0;
});
