//! The curve of one size of objects: a line through the measured points, its interval, and forecasts.
//!
//! Owns the decision between "linear" and "worse than linear", and the marks of forecasts beyond the measured points.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use statistics::line;

use super::{FORECASTS, Figures, Row};
use crate::statistics;
use crate::words::whole;

/// A cost whose exponent between the last two points exceeds this value grows worse than linearly. A linear cost
/// has exponents up to 1.6 if the heap is collected at twice its size or the machine is busy; a quadratic cost has 2.
const EXPONENT_MAX: f64 = 1.7;
/// Differences of memory below this size are noise, in bytes.
const MEMORY_FLOOR: f64 = (4 << 20) as f64;
/// Differences of processor time below this value are noise, in milliseconds.
const CPU_FLOOR: f64 = 300.0;

/// How a cost grows with the number of objects.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Shape {
    Linear,
    WorseThanLinear,
    /// There are too few points, or their differences are too small.
    #[default]
    Unknown,
}

impl Shape {
    pub fn words(self) -> &'static str {
        match self {
            Self::Linear => "linear",
            Self::WorseThanLinear => "worse than linear",
            Self::Unknown => "not decided",
        }
    }
}

/// The highest memory by the number of objects, for one size of objects.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Curve {
    /// Size of an object as JSON, in bytes.
    pub object_bytes: u64,
    /// The slope of the fitted line: memory per object, in bytes.
    pub bytes_per_object: f64,
    /// Half the width of the 95 % interval of the memory per object; absent with fewer than three points.
    pub bytes_per_object_half: Option<f64>,
    /// The memory that the fitted line gives without objects, in bytes.
    pub base_bytes: f64,
    /// How the highest memory grows.
    pub memory: Shape,
    /// How the processor time of the start grows.
    pub start: Shape,
    /// The largest number of objects in a row of this curve.
    pub played_to: u64,
    /// The number of objects at which the fitted line meets the limit of `--limit`.
    pub limit_at: Option<u64>,
    pub forecasts: Vec<Forecast>,
}

/// The memory that the fitted line gives for a number of objects.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Forecast {
    pub objects: u64,
    pub bytes: u64,
    /// The bounds of the 95 % interval; absent with fewer than three points.
    pub lower_bytes: Option<u64>,
    pub upper_bytes: Option<u64>,
    /// The number of objects divided by the largest number in the rows; absent if the quotient is at most 1.
    pub beyond_times: Option<f64>,
}

/// Fits the curve through the row without objects and the rows to whose end the program lived. `None` if there are
/// fewer than two such rows.
pub fn curve<'a>(
    base: &Row,
    rows: impl Iterator<Item = &'a Row>,
    object_bytes: u64,
    limit: Option<u64>,
) -> Option<Curve> {
    let mut points: Vec<(f64, &Figures)> = rows.filter_map(|row| Some((row.objects as f64, row.whole()?))).collect();
    points.extend(base.whole().map(|figures| (0.0, figures)));
    points.sort_by(|a, b| a.0.total_cmp(&b.0));
    let x: Vec<f64> = points.iter().map(|(objects, _)| *objects).collect();
    let memory: Vec<f64> = points.iter().map(|(_, figures)| figures.highest_bytes as f64).collect();
    let cpu: Vec<f64> = points.iter().map(|(_, figures)| figures.start_cpu_ms.unwrap_or(0) as f64).collect();
    let line = line::fit(&x, &memory).ok()?;
    let played_to = x.last().copied().unwrap_or(0.0);
    let forecasts = FORECASTS.iter().map(|objects| {
        let at = *objects as f64;
        let half = line.half_at(at);
        Forecast {
            objects: *objects,
            bytes: whole(line.at(at)),
            lower_bytes: half.map(|half| whole(line.at(at) - half)),
            upper_bytes: half.map(|half| whole(line.at(at) + half)),
            beyond_times: (at > played_to && played_to > 0.0).then(|| at / played_to),
        }
    });
    let limit_at = limit.map(|limit| limit as f64).filter(|_| line.slope > 0.0);
    Some(Curve {
        object_bytes,
        bytes_per_object: line.slope,
        bytes_per_object_half: line.slope_half,
        base_bytes: line.intercept,
        memory: shape(&x, &memory, MEMORY_FLOOR),
        start: shape(&x, &cpu, CPU_FLOOR),
        played_to: whole(played_to),
        limit_at: limit_at.map(|limit| whole((limit - line.intercept) / line.slope)),
        forecasts: forecasts.collect(),
    })
}

/// Compares the growth up to the last point with the growth up to the point before the last. `y[0]` is the cost without
/// objects.
fn shape(x: &[f64], y: &[f64], floor: f64) -> Shape {
    let (Some(first), [.., x1, x2], [.., y1, y2]) = (y.first(), x, y) else { return Shape::Unknown };
    if x.len() < 3 || x[0] > 0.0 || *x1 <= 0.0 || x2 <= x1 {
        return Shape::Unknown;
    }
    let (before, last) = (y1 - first, y2 - first);
    if last < floor {
        return Shape::Unknown;
    }
    // A floor under the smaller value makes the exponent smaller, never larger.
    let exponent = (last / before.max(floor)).ln() / (x2 / x1).ln();
    if exponent > EXPONENT_MAX { Shape::WorseThanLinear } else { Shape::Linear }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIB: f64 = (1 << 20) as f64;

    /// A quadratic cost is found to be worse than linear; a linear cost with a fixed part is not.
    #[test]
    fn worse_than_linear_is_seen() {
        let x = [0.0, 1_000.0, 3_000.0, 10_000.0];
        let quadratic: Vec<f64> = x.iter().map(|x| 30.0 * MIB + x * x * 2.0).collect();
        let linear: Vec<f64> = x.iter().map(|x| 30.0 * MIB + x * 20_000.0).collect();
        assert_eq!(shape(&x, &quadratic, MEMORY_FLOOR), Shape::WorseThanLinear);
        assert_eq!(shape(&x, &linear, MEMORY_FLOOR), Shape::Linear);
        assert_eq!(shape(&x[..3], &[120.0, 300.0, 1_170.0], CPU_FLOOR), Shape::Linear, "a busy machine");
        assert_eq!(shape(&x, &[0.0, 1.0, 2.0, 140.0], CPU_FLOOR), Shape::Unknown, "noise decides nothing");
        assert_eq!(shape(&x[..2], &linear[..2], MEMORY_FLOOR), Shape::Unknown);
    }
}
