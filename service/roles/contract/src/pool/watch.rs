//! Checks the instances of a pool again and again: their health, their trusted keys, and the files of their
//! connections.

use std::sync::{Arc, Weak};
use std::time::Duration;

use bytes::Bytes;
use futures_util::future::join_all;
use http::Request;
use tokio::time::{Instant, sleep};

use super::{Instance, Pool};
use crate::{ANSWER_BYTES_MAX, VALIDATE, answer, path};

/// Time between two checks of the instances. Within one second, changed trusted keys are noticed, and a reachable
/// instance is used again.
const INTERVAL: Duration = Duration::from_secs(1);
/// The files of the connections are read once in this many checks of the instances.
const FILES_EACH: u32 = 10;
/// An instance that does not describe itself within this time counts as unreachable.
const TIMEOUT: Duration = Duration::from_secs(2);

/// Checks the instances again and again until the pool is dropped.
pub(super) async fn follow(pool: Weak<Pool>) {
    let mut refused = String::new();
    for round in 0_u32.. {
        let Some(pool) = pool.upgrade() else { return };
        if round % FILES_EACH == FILES_EACH - 1 {
            files(&pool, &mut refused);
        }
        if pool.settings.describes_itself {
            join_all(pool.instances.iter().map(|instance| look(&pool, instance))).await;
        } else {
            // Without self-descriptions, the next question finds out.
            pool.instances.iter().for_each(|instance| instance.state.lock().down = None);
        }
        drop(pool);
        sleep(INTERVAL).await;
    }
}

async fn look(pool: &Pool, instance: &Instance) {
    let uri = path(instance.link.base(), VALIDATE, TIMEOUT);
    let Ok(request) = Request::get(uri).body(Bytes::new()) else { return };
    let said = match instance.link.client().fetch(request, ANSWER_BYTES_MAX, Instant::now() + TIMEOUT).await {
        Ok(answer) => answer::about(answer.status(), answer.body()).map_err(|breach| breach.to_string()),
        Err(error) => Err(error.to_string()),
    };
    match said {
        Ok(about) => pool.up(instance, Some(about.generation)),
        Err(why) => instance.state.lock().down = Some(why),
    }
}

/// Reads the files of the connections that have changed. Each reason for a failure is logged once, because half-written
/// files are normal during a rotation.
fn files(pool: &Arc<Pool>, refused: &mut String) {
    for instance in &pool.instances {
        match instance.link.look() {
            Ok(true) => {
                refused.clear();
                let validator = &*pool.settings.name;
                tracing::info!(name: crate::events::LINK_REPLACED, validator, "the certificates of the way to a validator were replaced");
            }
            Ok(false) => refused.clear(),
            Err(error) if error.to_string() != *refused => {
                *refused = error.to_string();
                let validator = &*pool.settings.name;
                tracing::warn!(name: crate::events::LINK_KEPT, validator, %error, "the certificates of the way to a validator were not replaced");
            }
            Err(_) => {}
        }
    }
}
