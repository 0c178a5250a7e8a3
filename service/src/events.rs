//! The names of log events about the process and its configuration, each with the keys of its fields.

service_core::events! {
    /// The process received a signal.
    SIGNAL = "process.signal" ["signal"],
    /// The process ends.
    STOPPED = "process.stopped" [],
    /// Connections were cut because the drain time had passed.
    CUT = "edge.cut" [],
    /// A changed configuration took effect.
    CONFIG_REPLACED = "config.replaced" ["generation", "sections"],
    /// The configuration file cannot be used.
    CONFIG_REFUSED = "config.refused" ["error"],
    /// The configuration file has changes that need a restart.
    CONFIG_WAITS = "config.waits" ["sections"],
}

#[cfg(test)]
mod tests;
