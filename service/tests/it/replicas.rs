//! Tests of the API over Deployments, row by row: each is named after its row of `docs/measured/replicas.md`.

mod calls;
mod image;
mod limits;
mod logs;
mod people;
mod reload;
mod tls;
mod view;
mod world;
