//! `longhaul` as its users run it: as a process, over real sockets, from a scenario file to an exit code.
#![expect(clippy::unwrap_used, reason = "a test stops at the first thing that is not as it must be")]

mod asked;
mod bad_input;
mod calibrate;
mod capacity;
mod clients;
mod clock_rate;
mod control_plane;
mod descriptors;
mod drawn;
mod end_state;
mod faults_page;
mod interrupt;
mod kubectl_run;
mod load;
mod matrix;
mod mistakes;
mod mock_network;
mod own_metrics;
mod planted;
mod plays;
mod replay;
mod repro;
mod service_rows;
mod strangers;
mod support;
mod through;
mod upkeep;
mod webhook;
mod witnesses;
mod workers;
mod workers_elsewhere;
