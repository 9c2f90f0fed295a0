// A list of which only the visible part is in the document. Rows have any height, measured once they are drawn.

const BEYOND = 600; // pixels around the visible part that are kept ready

export class VirtualList {
  /** `row` is {key, guess}. `render(row)` returns its element, which is kept as long as `sign(row)` is the same. */
  constructor(scroller, { render, sign, onSeen }) {
    this.scroller = scroller;
    this.render = render;
    this.sign = sign;
    this.onSeen = onSeen;
    this.rows = [];
    this.index = new Map();
    this.heights = new Map();
    this.mounted = new Map();
    this.tops = new Float64Array(1);
    this.aim = null; // a row to keep in view until the person scrolls
    this.put = 0; // the scroll position of that row
    this.frame = 0;
    this.space = document.createElement("div");
    this.space.className = "space";
    this.space.setAttribute("role", "feed");
    scroller.append(this.space);
    this.observer = new ResizeObserver((entries) => this._measured(entries));
    this.outer = new ResizeObserver(() => this.schedule());
    this.outer.observe(scroller);
    scroller.addEventListener("scroll", () => this._scrolled(), { passive: true });
  }

  set(rows) {
    const anchor = this._anchor();
    this.rows = rows;
    this.index = new Map(rows.map((row, at) => [row.key, at]));
    this._sum();
    if (!this.aim) this._hold(anchor);
    this.draw();
  }

  /** Scrolls a row into view and keeps it there while heights become known. `align`: start, end or center. */
  show(key, align = "center") {
    this.aim = { key, align };
    this.draw();
  }

  /** A person who scrolls, by whatever means, no longer wants the row that was scrolled to. */
  _scrolled() {
    if (this.aim && Math.abs(this.scroller.scrollTop - this.put) > 2) this.aim = null;
    this.schedule();
  }

  schedule() {
    if (!this.frame)
      this.frame = requestAnimationFrame(() => {
        this.frame = 0;
        this.draw();
      });
  }

  get atEnd() {
    return this.scroller.scrollTop + this.scroller.clientHeight >= this.scroller.scrollHeight - 40;
  }

  _sum() {
    const tops = new Float64Array(this.rows.length + 1);
    for (let at = 0; at < this.rows.length; at += 1) {
      const row = this.rows[at];
      tops[at + 1] = tops[at] + (this.heights.get(row.key) ?? row.guess);
    }
    this.tops = tops;
    this.space.style.height = `${tops[this.rows.length]}px`;
  }

  _at(y) {
    let low = 0;
    let high = this.rows.length - 1;
    while (low < high) {
      const middle = (low + high + 1) >> 1;
      if (this.tops[middle] <= y) low = middle;
      else high = middle - 1;
    }
    return low;
  }

  /** Returns the first visible row and its offset, which must not jump. */
  _anchor() {
    if (!this.rows.length) return null;
    const top = this.scroller.scrollTop;
    const at = this._at(top);
    return { key: this.rows[at].key, offset: top - this.tops[at] };
  }

  _hold(anchor) {
    const at = anchor && this.index.get(anchor.key);
    if (at === undefined || at === null) return;
    const top = this.tops[at] + anchor.offset;
    if (Math.abs(top - this.scroller.scrollTop) > 0.5) this.scroller.scrollTop = top;
  }

  _aimed() {
    const at = this.index.get(this.aim.key);
    if (at === undefined) return;
    const height = this.tops[at + 1] - this.tops[at];
    const room = this.scroller.clientHeight;
    const rest = room - height;
    const lift =
      this.aim.align === "end" ? Math.max(rest - 96, 0) : this.aim.align === "center" && rest > 0 ? rest / 2 : 12;
    this.scroller.scrollTop = Math.max(0, this.tops[at] - lift);
    this.put = this.scroller.scrollTop;
  }

  _measured(entries) {
    const anchor = this._anchor();
    let moved = false;
    for (const entry of entries) {
      const key = entry.target.dataset.key;
      const height = entry.borderBoxSize[0].blockSize;
      if (!entry.target.isConnected || !height || this.heights.get(key) === height) continue;
      this.heights.set(key, height);
      moved = true;
    }
    if (!moved) return;
    this._sum();
    if (!this.aim) this._hold(anchor);
    this.draw();
  }

  draw() {
    if (this.aim) this._aimed();
    if (!this.rows.length) {
      this.space.replaceChildren();
      this.mounted.clear();
      return;
    }
    const top = this.scroller.scrollTop;
    const from = this._at(Math.max(0, top - BEYOND));
    const to = this._at(top + this.scroller.clientHeight + BEYOND);
    const focused = document.activeElement?.closest?.("[data-key]")?.dataset.key;
    const keep = new Set();
    for (let at = from; at <= to; at += 1) keep.add(this.rows[at].key);
    if (focused && this.index.has(focused)) keep.add(focused);
    for (const [key, element] of this.mounted) {
      if (keep.has(key)) continue;
      this.observer.unobserve(element);
      element.remove();
      this.mounted.delete(key);
    }
    let next = this.space.firstElementChild;
    for (const at of [...keep].map((key) => this.index.get(key)).sort((a, b) => a - b)) {
      const row = this.rows[at];
      const sign = this.sign(row);
      let element = this.mounted.get(row.key);
      if (!element || element.sign !== sign) {
        const fresh = this._mount(row, sign, element);
        if (element && next === element) next = fresh;
        element = fresh;
      }
      if (element === next) next = next.nextElementSibling;
      else this.space.insertBefore(element, next);
      element.setAttribute("aria-posinset", at + 1);
      element.setAttribute("aria-setsize", this.rows.length);
      const shift = `translateY(${this.tops[at]}px)`;
      if (element.style.transform !== shift) element.style.transform = shift;
    }
    this.onSeen?.(this.rows.slice(from, to + 1));
  }

  _mount(row, sign, old) {
    const element = this.render(row);
    element.dataset.key = row.key;
    element.sign = sign;
    const focus = old?.contains(document.activeElement) ? document.activeElement.dataset.focus || "" : null;
    if (old) {
      this.observer.unobserve(old);
      old.replaceWith(element);
    }
    this.mounted.set(row.key, element);
    this.observer.observe(element);
    if (focus !== null) (element.querySelector(`[data-focus="${focus}"]`) || element).focus({ preventScroll: true });
    return element;
  }
}
