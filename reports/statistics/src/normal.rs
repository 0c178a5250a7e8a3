//! Quantiles of the standard normal distribution.

use super::Error;

/// Coefficients of the approximation of the normal quantile for `|p − 0.5| ≤ 0.425`: numerator and denominator.
const MIDDLE: ([f64; 8], [f64; 8]) = (
    [
        3.387_132_872_796_366_5,
        133.141_667_891_784_38,
        1_971.590_950_306_551_3,
        13_731.693_765_509_46,
        45_921.953_931_549_87,
        67_265.770_927_008_7,
        33_430.575_583_588_13,
        2_509.080_928_730_122_7,
    ],
    [
        1.0,
        42.313_330_701_600_91,
        687.187_007_492_057_9,
        5_394.196_021_424_751,
        21_213.794_301_586_597,
        39_307.895_800_092_71,
        28_729.085_735_721_943,
        5_226.495_278_852_545,
    ],
);

/// Coefficients of the approximation of the normal quantile for `√(−ln p) ≤ 5`: numerator and denominator.
const SHOULDER: ([f64; 8], [f64; 8]) = (
    [
        1.423_437_110_749_683_5,
        4.630_337_846_156_546,
        5.769_497_221_460_691,
        3.647_848_324_763_204_5,
        1.270_458_252_452_368_4,
        0.241_780_725_177_450_6,
        0.022_723_844_989_269_184,
        7.745_450_142_783_414e-4,
    ],
    [
        1.0,
        2.053_191_626_637_759,
        1.676_384_830_183_803_8,
        0.689_767_334_985_1,
        0.148_103_976_427_480_08,
        0.015_198_666_563_616_457,
        5.475_938_084_995_345e-4,
        1.050_750_071_644_416_9e-9,
    ],
);

/// The quantile of the standard normal distribution at `p`, by the rational approximation AS 241 (Wichura, 1988),
/// accurate to about 15 digits between 1e-11 and 1 − 1e-11; `p` is clamped to that range.
pub fn quantile(p: f64) -> Result<f64, Error> {
    if !(p > 0.0 && p < 1.0) {
        return Err(Error::OutOfRange { what: "the probability", value: p });
    }
    let off = p - 0.5;
    if off.abs() <= 0.425 {
        return Ok(off * ratio(&MIDDLE, 0.180_625 - off * off));
    }
    let tail = p.min(1.0 - p).max(1.4e-11);
    let z = ratio(&SHOULDER, (-tail.ln()).sqrt() - 1.6);
    Ok(if off < 0.0 { -z } else { z })
}

fn ratio((above, below): &([f64; 8], [f64; 8]), at: f64) -> f64 {
    let horner = |terms: &[f64; 8]| terms.iter().rev().fold(0.0, |sum, term| sum * at + term);
    horner(above) / horner(below)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_points() {
        // Wichura (1988), Applied Statistics 37(3), gives these as checks of his algorithm.
        for (p, z) in
            [(0.25, -0.674_489_750_196_081_7), (0.001, -3.090_232_306_167_813_7), (0.95, 1.644_853_626_951_472_7)]
        {
            assert!((quantile(p).unwrap() - z).abs() < 1e-12, "{p}: {}", quantile(p).unwrap());
        }
        for p in [0.0, 1.0, f64::NAN, -1.0] {
            assert!(quantile(p).is_err(), "{p}");
        }
    }
}
