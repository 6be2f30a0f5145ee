// What a reader would stumble over on the page that is open: a list of sentences.
(() => {
  const problems = [];
  const say = (what, node) => {
    const element = node.nodeType === 1 ? node : node.parentElement;
    const kind = `${element.tagName.toLowerCase()}.${element.getAttribute('class') || ''}`;
    problems.push(`${what}: ${kind} ${JSON.stringify(node.textContent.trim().slice(0, 50))}`);
  };

  const root = document.documentElement;
  if (root.scrollWidth > innerWidth) {
    problems.push(`the document takes ${root.scrollWidth} of ${innerWidth} pixels`);
  }

  const colour = text => {
    const [r, g, b, a = 1] = text.match(/[\d.]+/g).map(Number);
    return { r, g, b, a };
  };
  const over = (top, below) => {
    const mix = key => top[key] * top.a + below[key] * (1 - top.a);
    return { r: mix('r'), g: mix('g'), b: mix('b'), a: 1 };
  };
  const light = ({ r, g, b }) => {
    const part = value => {
      const share = value / 255;
      return share <= 0.04045 ? share / 12.92 : ((share + 0.055) / 1.055) ** 2.4;
    };
    return 0.2126 * part(r) + 0.7152 * part(g) + 0.0722 * part(b);
  };
  const contrast = (a, b) => {
    const [dark, bright] = [light(a), light(b)].sort((x, y) => x - y);
    return (bright + 0.05) / (dark + 0.05);
  };
  const background = element => {
    const layers = [];
    for (let at = element; at; at = at.parentElement) {
      const layer = colour(getComputedStyle(at).backgroundColor);
      if (layer.a > 0) layers.push(layer);
      if (layer.a === 1) break;
    }
    return layers.reverse().reduce((below, top) => over(top, below), { r: 255, g: 255, b: 255, a: 1 });
  };
  const contains = (outer, inner, slack = 1) =>
    inner.left >= outer.left - slack && inner.right <= outer.right + slack &&
    inner.top >= outer.top - slack && inner.bottom <= outer.bottom + slack;
  // In a drawing a text stands on whatever shape was drawn last below its middle.
  const backgroundInDrawing = (text, box, svg) => {
    const [x, y] = [(box.left + box.right) / 2, (box.top + box.bottom) / 2];
    let found = background(svg);
    for (const shape of svg.querySelectorAll('rect')) {
      if (!(shape.compareDocumentPosition(text) & Node.DOCUMENT_POSITION_FOLLOWING)) break;
      const fill = getComputedStyle(shape).fill;
      const edge = shape.getBoundingClientRect();
      if (fill !== 'none' && x >= edge.left && x <= edge.right && y >= edge.top && y <= edge.bottom) {
        found = over(colour(fill), found);
      }
    }
    return found;
  };

  const boxes = [];
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  for (let node = walker.nextNode(); node; node = walker.nextNode()) {
    const element = node.parentElement;
    if (!node.textContent.trim() || element.closest('title, desc, style, .skip')) continue;
    if (!element.checkVisibility({ visibilityProperty: true })) continue;
    const style = getComputedStyle(element);
    const svg = element.closest('svg');
    const range = document.createRange();
    range.selectNodeContents(node);
    const lines = [...range.getClientRects()].filter(line => line.width > 0.5 && line.height > 0.5);
    if (lines.length === 0) { say('a text takes no room', node); continue; }

    if (parseFloat(style.fontSize) < 11) say(`type of ${style.fontSize}`, node);
    const ink = colour(svg ? style.fill : style.color);
    const paper = svg ? backgroundInDrawing(element, lines[0], svg) : background(element);
    const ratio = contrast(over(ink, paper), paper);
    if (ratio < 4.5) say(`contrast ${ratio.toFixed(2)}`, node);

    let area = root;
    for (const line of lines) {
      for (let at = element; at && at !== root; at = at.parentElement) {
        const edge = at.getBoundingClientRect();
        const { overflowX, overflowY } = getComputedStyle(at);
        if (at === svg && !contains(edge, line)) say('a label leaves its drawing', node);
        if (/auto|scroll/.test(overflowX + overflowY)) { area = at; break; }
        if (at !== svg && /hidden|clip/.test(overflowX + overflowY) && !contains(edge, line)) say('a text is cut off', node);
      }
      if (area === root && (line.left < -0.5 || line.right > innerWidth + 0.5)) say('a text leaves the page', node);
    }
    const box = svg && element.parentElement.querySelector(':scope > rect.node');
    if (box && !contains(box.getBoundingClientRect(), element.getBoundingClientRect(), 0)) say('a label leaves its box', node);
    const cell = element.closest('td, th');
    if (cell && lines.some(line => !contains(cell.getBoundingClientRect(), line))) say('a text leaves its cell', node);
    for (const line of lines) boxes.push({ line, node, area });
  }

  boxes.sort((a, b) => a.line.top - b.line.top);
  boxes.forEach((a, index) => {
    for (let next = index + 1; next < boxes.length && boxes[next].line.top < a.line.bottom - 3; next++) {
      const b = boxes[next];
      if (a.node === b.node || a.area !== b.area) continue;
      const across = Math.min(a.line.right, b.line.right) - Math.max(a.line.left, b.line.left);
      if (across > 1.5) say(`a text runs over ${JSON.stringify(b.node.textContent.trim().slice(0, 30))}`, a.node);
    }
  });

  const headings = [...document.querySelectorAll('h1, h2, h3, h4')].map(one => Number(one.tagName[1]));
  headings.forEach((level, index) => {
    if (level > (headings[index - 1] || 0) + 1) problems.push(`a heading of level ${level} follows one of level ${headings[index - 1] || 0}`);
  });
  if (document.querySelectorAll('h1').length !== 1) problems.push('there is not one h1');
  for (const svg of document.querySelectorAll('svg')) {
    if (!svg.querySelector(':scope > title') || !svg.querySelector(':scope > desc')) problems.push('a drawing has no title or description');
  }
  for (const table of document.querySelectorAll('table')) {
    if (!table.caption) problems.push('a table has no caption');
  }
  for (const landmark of ['header', 'main', 'footer']) {
    if (!document.querySelector(landmark)) problems.push(`there is no ${landmark}`);
  }
  const ids = [...document.querySelectorAll('[id]')].map(one => one.id);
  if (new Set(ids).size !== ids.length) problems.push('an id stands twice');
  return { texts: boxes.length, problems: [...new Set(problems)].slice(0, 40) };
})()
