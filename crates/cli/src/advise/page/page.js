"use strict";
// Copies the commands beside a button. A page opened from disk may have no clipboard: then the
// commands are selected, so that they can be copied by hand.
document.querySelectorAll(".commands button").forEach((button) => {
  button.addEventListener("click", () => {
    const code = button.closest(".commands").querySelector("code");
    const range = document.createRange();
    range.selectNodeContents(code);
    const selection = getSelection();
    selection.removeAllRanges();
    selection.addRange(range);
    if (navigator.clipboard) {
      navigator.clipboard.writeText(code.textContent).then(() => {
        button.classList.add("done");
        button.textContent = "✓";
      }, () => {});
    }
  });
});
// A closed answer would be missing on paper.
addEventListener("beforeprint", () => {
  document.querySelectorAll("details").forEach((one) => { one.open = true; });
});
