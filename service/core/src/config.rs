//! The kit that configurations are made with.

pub use service_core_config::*;

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::quantity::*;

    #[test]
    fn units_scale_and_unknown_ones_are_named() {
        assert_eq!(span("200ms"), Ok(Span(Duration::from_millis(200))));
        assert_eq!(span("10m"), Ok(Span(Duration::from_mins(10))));
        assert_eq!(size("4MiB"), Ok(Size(4 << 20)));
        assert_eq!(span("5").unwrap_err().to_string(), "`5` has no unit: write for example `5s`");
        assert_eq!(
            size("4MB").unwrap_err().to_string(),
            "`4MB` has the unknown unit `MB`: use one of B, KiB, MiB, GiB"
        );
        assert!(span("-5s").unwrap_err().to_string().contains("whole number"));
        assert!(span("999999999999999999h").unwrap_err().to_string().contains("too large"));
    }
}
