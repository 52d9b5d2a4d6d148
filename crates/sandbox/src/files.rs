//! What is denied inside of a granted directory stays out of reach, by whatever path it is asked for.
//!
//! WASI's directories know no such holes, so the functions of `wasi:filesystem` 0.2 that take a path go this way: the directory that the path
//! leads to is opened, where that handle is now is looked up and compared, and only then something is done to the last name in it.
//! Nobody can change what a handle leads to, so a guest that swaps links meanwhile gains nothing. None of this is done for guests without
//! holes.

use std::path::{Path, PathBuf};

use wasmtime::component::{Linker, Resource};
use wasmtime_wasi::filesystem::{Descriptor, WasiFilesystemView as _};
use wasmtime_wasi::p2::FsError;
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

/// Where something is to be done: a name in a directory.
struct Place {
    directory: Resource<Descriptor>,
    name: String,
    /// Whether the directory was opened for this.
    is_own: bool,
}

impl Guest {
    /// The place that a path leads to, if nothing there is denied.
    async fn place(&mut self, directory: &Resource<Descriptor>, path: String, usage: Use) -> Result<Place, FsError> {
        let here = |name: String| Place {
            directory: Resource::new_borrow(directory.rep()),
            name,
            is_own: false,
        };
        if !self.has_holes {
            return Ok(here(path));
        }
        if self.is_denied(directory, &path, usage) {
            return Err(ErrorCode::NotPermitted.into());
        }
        let place = match split(&path) {
            (None, name) => here(name.to_owned()),
            (Some(folder), name) => {
                let borrowed = || Resource::new_borrow(directory.rep());
                let flags = self.filesystem().get_flags(borrowed()).await?;
                let follow = PathFlags::SYMLINK_FOLLOW;
                let opened = self
                    .filesystem()
                    .open_at(borrowed(), follow, folder.to_owned(), OpenFlags::DIRECTORY, flags)
                    .await?;
                Place {
                    directory: opened,
                    name: name.to_owned(),
                    is_own: true,
                }
            }
        };
        // What the handle leads to stays, so this is the answer that counts.
        let real = match self.filesystem().table.get(&place.directory)? {
            Descriptor::Dir(directory) => real_path(&directory.dir),
            Descriptor::File(_) => None,
        };
        if real.is_none_or(|real| is_denied(&self.confinement, &real.join(&place.name), usage)) {
            self.leave(place)?;
            return Err(ErrorCode::NotPermitted.into());
        }
        Ok(place)
    }

    /// Closes what was opened for a place.
    fn leave(&mut self, place: Place) -> Result<(), FsError> {
        if place.is_own { self.close(place.directory) } else { Ok(()) }
    }

    fn close(&mut self, opened: Resource<Descriptor>) -> Result<(), FsError> {
        types::HostDescriptor::drop(&mut self.filesystem(), opened).map_err(FsError::trap)
    }

    /// Opens a file, and empties it only when it is known to be none that is denied.
    async fn open(
        &mut self,
        directory: Resource<Descriptor>,
        mut follow: PathFlags,
        path: String,
        mut how: OpenFlags,
        flags: DescriptorFlags,
    ) -> Result<Resource<Descriptor>, FsError> {
        if !self.has_holes {
            return self.filesystem().open_at(directory, follow, path, how, flags).await;
        }
        let place = self.place(&directory, path, Use::Touch).await?;
        let borrowed = || Resource::new_borrow(place.directory.rep());
        let is_link = self.filesystem().readlink_at(borrowed(), place.name.clone()).await.is_ok();
        if is_link {
            // Nothing comes to be where a link leads.
            how &= !OpenFlags::CREATE;
        } else {
            follow &= !PathFlags::SYMLINK_FOLLOW;
        }
        let empties = how.contains(OpenFlags::TRUNCATE);
        how &= !OpenFlags::TRUNCATE;
        let opened = self
            .filesystem()
            .open_at(borrowed(), follow, place.name.clone(), how, flags)
            .await;
        self.leave(place)?;
        let opened = opened?;
        if self.opened_what_is_denied(&opened) {
            self.close(opened)?;
            return Err(ErrorCode::NotPermitted.into());
        }
        if empties {
            self.filesystem().set_size(Resource::new_borrow(opened.rep()), 0).await?;
        }
        Ok(opened)
    }
}

/// The folder of a path, if it names one, and what is in it.
fn split(path: &str) -> (Option<&str>, &str) {
    let trimmed = path.trim_end_matches('/');
    match trimmed.rsplit_once('/') {
        _ if matches!(trimmed.rsplit('/').next(), Some("..")) => (Some(path), "."),
        Some((folder, name)) => (Some(folder), name),
        None => (None, trimmed),
    }
}

/// What a function of WASI gives to its guest.
fn answer<T>(result: Result<T, FsError>) -> wasmtime::Result<(Result<T, ErrorCode>,)> {
    match result {
        Ok(done) => Ok((Ok(done),)),
        Err(error) => Ok((Err(error.downcast()?),)),
    }
}

/// A function of `descriptor` with one path, with what stands before and after it.
macro_rules! guarded {
    ($instance:ident, $name:literal, $method:ident, ($($before:ident: $before_ty:ty)?), ($($after:ident: $after_ty:ty),*), $usage:ident) => {
        $instance.func_wrap_async(
            concat!("[method]descriptor.", $name),
            |mut store, (this, $($before,)? path, $($after,)*): (Resource<Descriptor>, $($before_ty,)? String, $($after_ty,)*)| {
                Box::new(async move {
                    let guest: &mut Guest = store.data_mut();
                    let place = match guest.place(&this, path, Use::$usage).await {
                        Ok(place) => place,
                        Err(error) => return answer(Err(error)),
                    };
                    let directory = Resource::new_borrow(place.directory.rep());
                    let done = guest.filesystem().$method(directory, $($before,)? place.name.clone(), $($after,)*).await;
                    answer(guest.leave(place).and(done))
                })
            },
        )?;
    };
}

/// Puts the question before the functions of a linker that has `wasi:filesystem` already.
pub(crate) fn check_paths(linker: &mut Linker<Guest>) -> wasmtime::Result<()> {
    linker.allow_shadowing(true);
    let mut instance = linker.instance("wasi:filesystem/types@0.2.12")?;
    guarded!(instance, "create-directory-at", create_directory_at, (), (), Touch);
    guarded!(instance, "stat-at", stat_at, (flags: PathFlags), (), Touch);
    guarded!(instance, "set-times-at", set_times_at, (flags: PathFlags), (accessed: NewTimestamp, modified: NewTimestamp), Touch);
    guarded!(instance, "readlink-at", readlink_at, (), (), Touch);
    guarded!(instance, "remove-directory-at", remove_directory_at, (), (), Move);
    guarded!(instance, "symlink-at", symlink_at, (target: String), (), Touch);
    guarded!(instance, "unlink-file-at", unlink_file_at, (), (), Move);
    guarded!(instance, "metadata-hash-at", metadata_hash_at, (flags: PathFlags), (), Touch);
    instance.func_wrap_async(
        "[method]descriptor.open-at",
        |mut store, (this, follow, path, how, flags): (Resource<Descriptor>, PathFlags, String, OpenFlags, DescriptorFlags)| {
            Box::new(async move {
                let guest: &mut Guest = store.data_mut();
                answer(guest.open(this, follow, path, how, flags).await)
            })
        },
    )?;
    instance.func_wrap_async(
        "[method]descriptor.rename-at",
        |mut store, (this, old, into, new): (Resource<Descriptor>, String, Resource<Descriptor>, String)| {
            Box::new(async move {
                let guest: &mut Guest = store.data_mut();
                answer(guest.two_places(&this, old, &into, new, None).await)
            })
        },
    )?;
    instance.func_wrap_async(
        "[method]descriptor.link-at",
        |mut store, (this, flags, old, into, new): (Resource<Descriptor>, PathFlags, String, Resource<Descriptor>, String)| {
            Box::new(async move {
                let guest: &mut Guest = store.data_mut();
                answer(guest.two_places(&this, old, &into, new, Some(flags)).await)
            })
        },
    )?;
    linker.allow_shadowing(false);
    Ok(())
}

impl Guest {
    /// Renames; or, with flags, links.
    async fn two_places(
        &mut self,
        from: &Resource<Descriptor>,
        old: String,
        into: &Resource<Descriptor>,
        new: String,
        link: Option<PathFlags>,
    ) -> Result<(), FsError> {
        // Where a link would lead, if it was followed, is nobody's to say in advance.
        if self.has_holes && link.is_some_and(|flags| flags.contains(PathFlags::SYMLINK_FOLLOW)) {
            return Err(ErrorCode::NotPermitted.into());
        }
        let from = self.place(from, old, Use::Move).await?;
        let into = match self.place(into, new, Use::Move).await {
            Ok(into) => into,
            Err(error) => {
                self.leave(from)?;
                return Err(error);
            }
        };
        let borrowed = |place: &Place| Resource::new_borrow(place.directory.rep());
        let (old, new) = (from.name.clone(), into.name.clone());
        let done = match link {
            Some(flags) => {
                self.filesystem()
                    .link_at(borrowed(&from), flags, old, borrowed(&into), new)
                    .await
            }
            None => self.filesystem().rename_at(borrowed(&from), old, borrowed(&into), new).await,
        };
        self.leave(from)?;
        self.leave(into)?;
        done
    }
}
