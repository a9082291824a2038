// What is live is requested again every two seconds, and never while the page is hidden.
(() => {
  const refresh = () => {
    const live = document.getElementById("live");
    if (live && !document.hidden) live.dispatchEvent(new CustomEvent("refresh"));
  };
  const live = document.getElementById("live");
  if (!live) return;
  setInterval(refresh, Number(live.dataset.every));
  document.addEventListener("visibilitychange", refresh);
})();
