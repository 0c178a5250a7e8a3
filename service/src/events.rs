//! The events of the process and its configuration, each with the keys of its context.

service_core::events! {
    /// A signal arrived.
    SIGNAL = "process.signal" ["signal"],
    /// The process ends.
    STOPPED = "process.stopped" [],
    /// Connections were cut at the end of the drain.
    CUT = "edge.cut" [],
    /// Another configuration is in effect.
    CONFIG_REPLACED = "config.replaced" ["generation", "sections"],
    /// The configuration file cannot be used.
    CONFIG_REFUSED = "config.refused" ["error"],
    /// The file has changes that need a restart.
    CONFIG_WAITS = "config.waits" ["sections"],
}

#[cfg(test)]
mod tests;
