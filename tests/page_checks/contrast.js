// Returns how many texts are visible, and those whose contrast to their ground is below 4.5.
() => {
  const brush = new OffscreenCanvas(1, 1).getContext("2d", { willReadFrequently: true });
  const rgba = (colour) => {
    brush.clearRect(0, 0, 1, 1);
    brush.fillStyle = colour;
    brush.fillRect(0, 0, 1, 1);
    return [...brush.getImageData(0, 0, 1, 1).data];
  };
  const luminance = (colour) => {
    const [r, g, b] = rgba(colour).map((part) => {
      const share = part / 255;
      return share <= 0.04045 ? share / 12.92 : ((share + 0.055) / 1.055) ** 2.4;
    });
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const ground = (node) => {
    for (let at = node; at; at = at.parentElement) {
      const colour = getComputedStyle(at).backgroundColor;
      if (rgba(colour)[3] > 0) return colour;
    }
    return "white";
  };
  const contrast = (node) => {
    const pair = [luminance(getComputedStyle(node).color), luminance(ground(node))];
    return (Math.max(...pair) + 0.05) / (Math.min(...pair) + 0.05);
  };
  const texts = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  const found = { seen: 0, poor: [] };
  while (texts.nextNode()) {
    const node = texts.currentNode.parentElement;
    const text = texts.currentNode.textContent.trim();
    if (!text || !node.checkVisibility() || node.closest("script, option, noscript")) continue;
    found.seen += 1;
    if (contrast(node) < 4.5) found.poor.push(`${contrast(node).toFixed(2)}: ${text}`);
  }
  return found;
};
