//! What is denied inside of a granted directory stays out of reach, by whatever path it is asked for.
//!
//! WASI's directories know no such holes, so the functions of `wasi:filesystem` 0.2 that take a path are asked here first. Links are resolved for
//! the question, and what was opened in the end is looked at once more. Nothing of this is done for guests without holes.

use std::path::{Path, PathBuf};

use wasmtime::component::{Linker, Resource};
use wasmtime_wasi::filesystem::{Descriptor, WasiFilesystemView as _};
use wasmtime_wasi::p2::bindings::filesystem::types::{
    self, DescriptorFlags, ErrorCode, HostDescriptor as _, NewTimestamp, OpenFlags, PathFlags,
};

use crate::confinement::Confinement;
use crate::denials::Denied;
use crate::directories::real_path;
use crate::guest::Guest;

/// What is about to happen to a path.
#[derive(Clone, Copy, PartialEq)]
enum Use {
    /// It is looked at or changed.
    Touch,
    /// It gets another name or none, with all that is below it.
    Move,
}

impl Guest {
    /// Whether a path below a directory leads to something that is denied. The guest is told no more than that it may not.
    fn is_denied(&mut self, directory: &Resource<Descriptor>, path: &str, usage: Use) -> bool {
        if !self.has_holes {
            return false;
        }
        let base = match self.filesystem().table.get(directory) {
            Ok(Descriptor::Dir(directory)) => real_path(&directory.dir),
            // What is no directory is refused anyway.
            Ok(Descriptor::File(_)) | Err(_) => return false,
        };
        let places = match base {
            Some(base) => places(&base.join(path)),
            None => return true,
        };
        let denied = |place: &PathBuf| is_denied(&self.confinement, place, usage);
        match places.iter().find(|place| denied(place)) {
            Some(place) => {
                self.deny_file(place);
                true
            }
            None => false,
        }
    }

    /// Whether what was opened is denied: a link may have changed since the question.
    fn opened_what_is_denied(&mut self, opened: &Resource<Descriptor>) -> bool {
        if !self.has_holes {
            return false;
        }
        let place = match self.filesystem().table.get(opened) {
            Ok(Descriptor::Dir(directory)) => real_path(&directory.dir),
            Ok(Descriptor::File(file)) => real_path(&file.file),
            Err(_) => None,
        };
        place.is_none_or(|place| is_denied(&self.confinement, &place, Use::Touch))
    }

    fn deny_file(&self, place: &Path) {
        self.denials.add(Denied {
            what: format!("the file `{}`, which is denied with `--deny-read`", place.display()),
            remedy: None,
        });
    }
}

fn is_denied(confinement: &Confinement, place: &Path, usage: Use) -> bool {
    let mut denied = confinement.directories.denied.iter().flat_map(|denied| denied.places());
    denied.any(|denied| place.starts_with(&denied) || usage == Use::Move && denied.starts_with(place))
}

/// Where a path leads to: with its last part followed if that is a link, and without.
fn places(path: &Path) -> Vec<PathBuf> {
    let followed = path.canonicalize().ok();
    let beside = match (path.parent(), path.file_name()) {
        (Some(parent), Some(name)) => parent.canonicalize().ok().map(|parent| parent.join(name)),
        // It ends with `..`, so it names a directory.
        _ => None,
    };
    followed.into_iter().chain(beside).collect()
}

/// A function of `descriptor` that is asked for each of its paths first.
macro_rules! guarded {
    ($instance:ident, $name:literal, $method:ident, ($($argument:ident: $ty:ty),*), $(($directory:ident / $path:ident, $usage:ident)),+) => {
        $instance.func_wrap_async(
            concat!("[method]descriptor.", $name),
            |mut store, (this, $($argument,)*): (Resource<Descriptor>, $($ty,)*)| {
                Box::new(async move {
                    let guest: &mut Guest = store.data_mut();
                    $(if guest.is_denied(guarded!(@ this $directory), &$path, Use::$usage) {
                        return Ok((Err(ErrorCode::NotPermitted),));
                    })+
                    Ok((match guest.filesystem().$method(this, $($argument,)*).await {
                        Ok(done) => Ok(done),
                        Err(error) => Err(error.downcast()?),
                    },))
                })
            },
        )?;
    };
    (@ $this:ident this) => { &$this };
    (@ $this:ident $other:ident) => { &$other };
}

/// Puts the question before the functions of a linker that has `wasi:filesystem` already.
pub(crate) fn check_paths(linker: &mut Linker<Guest>) -> wasmtime::Result<()> {
    linker.allow_shadowing(true);
    let mut instance = linker.instance("wasi:filesystem/types@0.2.12")?;
    guarded!(instance, "create-directory-at", create_directory_at, (path: String), (this / path, Touch));
    guarded!(instance, "stat-at", stat_at, (flags: PathFlags, path: String), (this / path, Touch));
    guarded!(
        instance, "set-times-at", set_times_at,
        (flags: PathFlags, path: String, accessed: NewTimestamp, modified: NewTimestamp),
        (this / path, Touch)
    );
    guarded!(
        instance, "link-at", link_at,
        (flags: PathFlags, old: String, into: Resource<Descriptor>, new: String),
        (this / old, Touch), (into / new, Touch)
    );
    guarded!(instance, "readlink-at", readlink_at, (path: String), (this / path, Touch));
    guarded!(instance, "remove-directory-at", remove_directory_at, (path: String), (this / path, Move));
    guarded!(
        instance, "rename-at", rename_at,
        (old: String, into: Resource<Descriptor>, new: String),
        (this / old, Move), (into / new, Move)
    );
    guarded!(instance, "symlink-at", symlink_at, (target: String, path: String), (this / path, Touch));
    guarded!(instance, "unlink-file-at", unlink_file_at, (path: String), (this / path, Move));
    guarded!(instance, "metadata-hash-at", metadata_hash_at, (flags: PathFlags, path: String), (this / path, Touch));
    instance.func_wrap_async(
        "[method]descriptor.open-at",
        |mut store, (this, follow, path, how, flags): (Resource<Descriptor>, PathFlags, String, OpenFlags, DescriptorFlags)| {
            Box::new(async move {
                let guest: &mut Guest = store.data_mut();
                if guest.is_denied(&this, &path, Use::Touch) {
                    return Ok((Err(ErrorCode::NotPermitted),));
                }
                let opened = match guest.filesystem().open_at(this, follow, path, how, flags).await {
                    Ok(opened) => opened,
                    Err(error) => return Ok((Err(error.downcast()?),)),
                };
                if guest.opened_what_is_denied(&opened) {
                    types::HostDescriptor::drop(&mut guest.filesystem(), opened)?;
                    return Ok((Err(ErrorCode::NotPermitted),));
                }
                Ok((Ok(opened),))
            })
        },
    )?;
    linker.allow_shadowing(false);
    Ok(())
}
