// Shows what a mark stands for: the same text that screen readers are given.
const tip = document.getElementById("tip");
const marks = ["point", "bar", "rect mark"].map((kind) => `.picture [aria-roledescription="${kind}"][aria-label]`).join();
document.addEventListener("pointermove", (event) => {
  const mark = event.target.closest(marks);
  tip.hidden = !mark;
  if (!mark) return;
  tip.textContent = mark.getAttribute("aria-label");
  const left = Math.min(event.clientX + 14, window.innerWidth - tip.offsetWidth - 8);
  tip.style.left = `${Math.max(8, left)}px`;
  tip.style.top = `${event.clientY + 18}px`;
});
