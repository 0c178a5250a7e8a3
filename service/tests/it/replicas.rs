//! Tests of the API that scales Deployments. The table in `docs/measured/replicas.md` names the tests of each
//! requirement.

mod calls;
mod image;
mod limits;
mod logs;
mod people;
mod reload;
mod tls;
mod view;
mod world;
