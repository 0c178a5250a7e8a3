//! The API over Deployments, row by row: each test is named after the row of `docs/measured/replicas.md` that it is for.

mod calls;
mod image;
mod limits;
mod logs;
mod people;
mod reload;
mod tls;
mod view;
mod world;
