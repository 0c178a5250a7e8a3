use proptest::prelude::*;

use super::*;

fn close(a: f64, b: f64) -> bool {
    (a - b).abs() <= 1e-9 * a.abs().max(b.abs()).max(1.0) || a.total_cmp(&b).is_eq()
}

#[test]
fn a_level_has_no_slope_and_too_few_points_have_no_bound() {
    let found = slope(&[1.0, 2.0, 3.0, 4.0, 5.0], &[7.0; 5], 0.95, 1.0).unwrap();
    assert_eq!([found.estimate, found.lower, found.upper].map(f64::to_bits), [0.0_f64; 3].map(f64::to_bits));
    let found = slope(&[1.0, 2.0], &[1.0, 2.0], 0.95, 1.0).unwrap();
    assert!(found.lower.is_infinite() && found.upper.is_infinite(), "{found:?}");
}

#[test]
fn what_cannot_be_computed_is_refused() {
    assert_eq!(slope(&[1.0], &[1.0], 0.95, 1.0), Err(Error::TooFew { found: 1, least: 2 }));
    assert_eq!(slope(&[1.0, 1.0], &[1.0, 2.0], 0.95, 1.0), Err(Error::Flat));
    assert_eq!(slope(&[1.0, 2.0], &[1.0], 0.95, 1.0), Err(Error::Unpaired { left: 2, right: 1 }));
    assert_eq!(slope(&[1.0, f64::INFINITY], &[1.0, 2.0], 0.95, 1.0), Err(Error::NotFinite { index: 1 }));
    assert_eq!(slope(&[], &[], 0.95, 1.0), Err(Error::TooFew { found: 0, least: 2 }));
    assert!(slope(&[1.0, 2.0], &[1.0, 2.0], f64::NAN, 1.0).is_err());
    assert!(slope(&[1.0, 2.0], &[1.0, 2.0], 0.95, 0.0).is_err());
    let many = vec![0.0; POINTS_MAX + 1];
    assert!(matches!(slope(&many, &many, 0.95, 1.0), Err(Error::TooMany { .. })));
}

proptest! {
    /// If a line is added to the points, its slope is added to the estimate. If the points' values are multiplied by a
    /// factor, the slope is too; the order of the points does not matter.
    #[test]
    fn shift_scale_order(y in prop::collection::vec(-1e3..1e3_f64, 8..40), line in -5.0..5.0_f64, factor in 0.1..10.0_f64) {
        let x: Vec<f64> = (0..y.len()).map(|i| i as f64).collect();
        let plain = slope(&x, &y, 0.95, 1.2).unwrap();
        prop_assert!(plain.lower <= plain.estimate && plain.estimate <= plain.upper);
        let moved: Vec<f64> = x.iter().zip(&y).map(|(x, y)| factor * (y + line * x) + 77.0).collect();
        let found = slope(&x, &moved, 0.95, 1.2).unwrap();
        for (a, b) in [(plain.estimate, found.estimate), (plain.lower, found.lower), (plain.upper, found.upper)] {
            prop_assert!((factor * (a + line) - b).abs() < 1e-6, "{plain:?} {found:?}");
        }
        let (back_x, back_y): (Vec<f64>, Vec<f64>) = x.iter().zip(&y).rev().unzip();
        prop_assert!(close(slope(&back_x, &back_y, 0.95, 1.2).unwrap().estimate, plain.estimate));
        // More confidence, a wider interval.
        let wide = slope(&x, &y, 0.99, 1.2).unwrap();
        prop_assert!(wide.lower <= plain.lower && plain.upper <= wide.upper);
    }

    /// A sudden step between strata does not change the slope.
    #[test]
    fn strata_do_not_see_a_step(y in prop::collection::vec(-1e3..1e3_f64, 12..30), step in -1e4..1e4_f64) {
        let x: Vec<f64> = (0..y.len()).map(|i| i as f64).collect();
        let at = y.len() / 2;
        let found = |y: &[f64]| {
            let strata = [Stratum { x: &x[..at], y: &y[..at] }, Stratum { x: &x[at..], y: &y[at..] }];
            stratified(&strata, 0.95, 1.0).unwrap().estimate
        };
        let stepped: Vec<f64> = y.iter().enumerate().map(|(i, y)| if i < at { *y } else { y + step }).collect();
        prop_assert!((found(&y) - found(&stepped)).abs() < 1e-6);
    }
}
