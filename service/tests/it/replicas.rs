//! Tests of the API that scales Deployments. A test named `r13_…` belongs to the row with number 13 of the table in
//! `docs/measured/replicas.md`.

mod calls;
mod image;
mod limits;
mod logs;
mod people;
mod reload;
mod tls;
mod view;
mod world;
