/* A pen with the part of a canvas's that drawings use, which writes SVG. */

const WRITTEN = { "&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;" };

function written(text) {
  return text.replace(/[&<>"]/g, (letter) => WRITTEN[letter]);
}

class VectorPen {
  constructor(width, height) {
    Object.assign(this, { width, height });
    Object.assign(this, { fillStyle: "#000000", strokeStyle: "#000000", lineWidth: 1 });
    Object.assign(this, { font: FONT, textAlign: "left", textBaseline: "middle", globalAlpha: 1 });
    this.dash = [];
    this.path = "";
    this.parts = [];
    this.open = [];
    this.ruler = document.createElement("canvas").getContext("2d");
  }

  save() {
    this.open.push("");
  }

  restore() {
    this.parts.push(this.open.pop());
  }

  /* Clip to the path, which is a rectangle: an inner picture shows nothing beyond its size. */
  clip() {
    const [x, y, width, height] = this.area.map(short);
    const place = `x="${x}" y="${y}" width="${width}" height="${height}"`;
    this.parts.push(`<svg ${place} viewBox="${x} ${y} ${width} ${height}">`);
    this.open[this.open.length - 1] += "</svg>";
  }

  beginPath() {
    this.path = "";
  }

  moveTo(x, y) {
    this.path += `M${short(x)} ${short(y)}`;
  }

  lineTo(x, y) {
    this.path += `L${short(x)} ${short(y)}`;
  }

  rect(x, y, width, height) {
    this.area = [x, y, width, height];
    this.path += `M${short(x)} ${short(y)}h${short(width)}v${short(height)}h${short(-width)}z`;
  }

  setLineDash(dash) {
    this.dash = dash;
  }

  stroke() {
    const dash = this.dash.length ? ` stroke-dasharray="${this.dash.join(" ")}"` : "";
    const stroke = `stroke="${this.strokeStyle}" stroke-width="${this.lineWidth}"${dash}`;
    this.parts.push(`<path d="${this.path}" fill="none" ${stroke}/>`);
  }

  fill() {
    this.parts.push(`<path d="${this.path}"${this.filled()}/>`);
  }

  filled() {
    const alpha = this.globalAlpha < 1 ? ` fill-opacity="${short(this.globalAlpha)}"` : "";
    return ` fill="${this.fillStyle}"${alpha}`;
  }

  fillRect(x, y, width, height, title = "") {
    const size = `width="${short(width)}" height="${short(height)}"`;
    const place = `x="${short(x)}" y="${short(y)}" ${size}`;
    const end = title ? `><title>${written(title)}</title></rect>` : "/>";
    this.parts.push(`<rect ${place}${this.filled()}${end}`);
  }

  strokeRect(x, y, width, height) {
    this.beginPath();
    this.rect(x, y, width, height);
    this.stroke();
  }

  measureText(text) {
    this.ruler.font = this.font;
    return this.ruler.measureText(text);
  }

  fillText(text, x, y) {
    const anchor = { left: "start", center: "middle", right: "end" }[this.textAlign];
    const shift = { top: 0.8, middle: 0.35, bottom: -0.2 }[this.textBaseline];
    const size = parseFloat(this.font);
    const place = `x="${short(x)}" y="${short(y + shift * size)}"`;
    const look = `font-size="${size}" text-anchor="${anchor}"${this.filled()}`;
    this.parts.push(`<text ${place} ${look}>${written(text)}</text>`);
  }

  /* The document, over a background. */
  document(background) {
    const size = `width="${this.width}" height="${this.height}"`;
    const view = `viewBox="0 0 ${this.width} ${this.height}"`;
    return (
      `<svg xmlns="http://www.w3.org/2000/svg" ${size} ${view} ` +
      `font-family="system-ui, -apple-system, 'Segoe UI', Roboto, sans-serif">` +
      `<rect ${size} fill="${background}"/>${this.parts.join("\n")}</svg>\n`
    );
  }
}

/* A number as short as a hundredth of a pixel needs. */
function short(value) {
  return `${Math.round(value * 100) / 100}`;
}

/* What `Drawing.paint` fills, as rectangles of a vector pen. */
class VectorTarget {
  constructor(pen, drawing) {
    Object.assign(this, { pen, drawing });
    this.width = Math.round((drawing.right - drawing.left) * drawing.ratio);
    this.height = Math.round((drawing.plotBottom - drawing.plotTop) * drawing.ratio);
  }

  colour(hex) {
    return hex;
  }

  rect(left, top, right, bottom, colour) {
    const { pen, drawing } = this;
    pen.fillStyle = colour;
    pen.fillRect(
      drawing.left + left / drawing.ratio,
      drawing.plotTop + top / drawing.ratio,
      (right - left) / drawing.ratio,
      (bottom - top) / drawing.ratio,
    );
  }
}
