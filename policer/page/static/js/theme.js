// Light, dark, or as the system has it: before the first paint, so that nothing flashes.

(() => {
  const KEY = "policer-theme";
  const root = document.documentElement;
  const kept = localStorage.getItem(KEY);
  if (kept) root.dataset.theme = kept;

  const take = (choice) => {
    if (choice === "system") delete root.dataset.theme;
    else root.dataset.theme = choice;
    if (choice === "system") localStorage.removeItem(KEY);
    else localStorage.setItem(KEY, choice);
    root.dispatchEvent(new Event("themechange"));
  };

  document.addEventListener("DOMContentLoaded", () => {
    const select = document.getElementById("theme");
    select.value = root.dataset.theme ?? "system";
    select.addEventListener("change", () => take(select.value));
  });
  const system = matchMedia("(prefers-color-scheme: dark)");
  system.addEventListener("change", () => root.dispatchEvent(new Event("themechange")));
})();
