//! The picture: one bar for each target, as long as the part of its limit that is used. Readable on light and on dark pages.

use std::fmt::Write as _;

use crate::report::Target;

const WIDTH: usize = 860;
const ROW: usize = 46;
const TOP: usize = 30;
/// Where bars begin, and how long one is that reaches its limit.
const LEFT: usize = 16;
const FULL: f64 = 600.0;
/// No bar is longer than this part of the limit.
const LONGEST: f64 = 1.3;

const STYLE: &str = "
    text { font: 13px system-ui, sans-serif; fill: #1f2328; }
    .quiet { fill: #59636e; }
    .track { fill: #d1d9e0; }
    .met { fill: #1a7f37; }
    .missed { fill: #cf222e; }
    .limit { stroke: #1f2328; stroke-width: 2; }
    @media (prefers-color-scheme: dark) {
        text { fill: #f0f6fc; }
        .quiet { fill: #9198a1; }
        .track { fill: #3d444d; }
        .met { fill: #3fb950; }
        .missed { fill: #f85149; }
        .limit { stroke: #f0f6fc; }
    }";

pub(crate) fn plot(targets: &[&Target]) -> String {
    let height = TOP + targets.len() * ROW + 10;
    let limit = LEFT as f64 + FULL;
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {height}\" width=\"{WIDTH}\" height=\"{height}\" role=\"img\" \
         aria-label=\"How much of each limit is used\">\n<style>{STYLE}\n</style>\n\
         <text class=\"quiet\" x=\"{limit}\" y=\"18\" text-anchor=\"middle\">limit</text>\n"
    );
    for (index, target) in targets.iter().enumerate() {
        let y = TOP + index * ROW;
        let length = FULL * target.share().clamp(0.0, LONGEST);
        let class = if target.is_met() { "met" } else { "missed" };
        // Writing to a `String` does not fail.
        let _ = write!(
            svg,
            "<text x=\"{LEFT}\" y=\"{}\">{}: <tspan font-weight=\"600\">{}</tspan> <tspan class=\"quiet\">{}</tspan></text>\n\
             <rect class=\"track\" x=\"{LEFT}\" y=\"{}\" width=\"{FULL}\" height=\"12\" rx=\"2\"/>\n\
             <rect class=\"{class}\" x=\"{LEFT}\" y=\"{}\" width=\"{length:.1}\" height=\"12\" rx=\"2\"/>\n\
             <path class=\"limit\" d=\"M{limit} {}v18\"/>\n",
            y + 14,
            plain(&target.what),
            plain(&target.measured()),
            plain(&target.limit()),
            y + 21,
            y + 21,
            y + 18,
        );
    }
    svg.push_str("</svg>\n");
    svg
}

/// Without the marks of Markdown, and with those of XML made harmless.
fn plain(text: &str) -> String {
    text.replace('`', "").replace('&', "&amp;").replace('<', "&lt;")
}
