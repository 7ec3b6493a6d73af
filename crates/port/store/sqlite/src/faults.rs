//! Where tests make the disk fail or a thread panic. Compiles to nothing otherwise.

/// A place where a fault can be injected.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Point {
    /// The commit of a group.
    Commit,
    /// The flush of the database file after a checkpoint.
    CheckpointFlush,
}

/// The faults that are planned.
#[derive(Debug, Default)]
pub(crate) struct Faults {
    #[cfg(test)]
    pub(crate) planned: planned::Planned,
}

impl Faults {
    /// Whether to fail here as the disk would.
    #[cfg(test)]
    pub(crate) fn hit(&self, point: Point) -> bool {
        self.planned.hit(point)
    }

    #[cfg(not(test))]
    #[expect(clippy::unused_self, reason = "there are none")]
    pub(crate) fn hit(&self, _point: Point) -> bool {
        false
    }
}

#[cfg(test)]
pub(crate) mod planned {
    use std::sync::Mutex;

    use super::Point;

    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub(crate) enum Fault {
        Error,
        Panic,
    }

    #[derive(Debug, Default)]
    pub(crate) struct Planned(Mutex<Option<(Point, Fault)>>);

    impl Planned {
        /// The next time something is at this point, this happens, once.
        pub(crate) fn plan(&self, point: Point, fault: Fault) {
            *self.0.lock().unwrap() = Some((point, fault));
        }

        pub(crate) fn hit(&self, point: Point) -> bool {
            let planned = self.0.lock().unwrap().take_if(|(planned, _)| *planned == point);
            match planned {
                Some((_, Fault::Panic)) => panic!("a bug at {point:?}"),
                Some((_, Fault::Error)) => true,
                None => false,
            }
        }
    }
}
