//! Tries to leave the directories that it was given. Paths go to `wasi:filesystem` itself, because std reads them first.

wit_bindgen::generate!({ path: "wit" });

use wasip2::clocks::wall_clock::Datetime;
use wasip2::filesystem::preopens::get_directories;
use wasip2::filesystem::types::{Descriptor, DescriptorFlags, DescriptorType, ErrorCode, NewTimestamp, OpenFlags, PathFlags};

/// What one read asks for at most.
const CHUNK: u64 = 64 * 1024;

struct Escape;

impl Guest for Escape {
    fn preopens() -> Vec<String> {
        get_directories().into_iter().map(|(_, name)| name).collect()
    }

    fn read(preopen: u32, path: String, follow: bool) -> Result<String, String> {
        read_below(&directory(preopen)?, &path, flags(follow)).map_err(name)
    }

    fn write(preopen: u32, path: String, text: String) -> Result<(), String> {
        let opening = OpenFlags::CREATE | OpenFlags::TRUNCATE;
        let file = directory(preopen)?
            .open_at(flags(true), &path, opening, DescriptorFlags::WRITE)
            .map_err(name)?;
        write_at(&file, &text, 0).map_err(name)
    }

    fn append(preopen: u32, path: String, text: String) -> Result<(), String> {
        let file = directory(preopen)?
            .open_at(flags(true), &path, OpenFlags::empty(), DescriptorFlags::WRITE)
            .map_err(name)?;
        let end = file.stat().map_err(name)?.size;
        write_at(&file, &text, end).map_err(name)
    }

    fn list_directory(preopen: u32, path: String) -> Result<Vec<String>, String> {
        let folder = open_directory(&directory(preopen)?, &path).map_err(name)?;
        let entries = folder.read_directory().map_err(name)?;
        let mut names = Vec::new();
        while let Some(entry) = entries.read_directory_entry().map_err(name)? {
            names.push(entry.name);
        }
        names.sort();
        Ok(names)
    }

    fn make_directory(preopen: u32, path: String) -> Result<(), String> {
        directory(preopen)?.create_directory_at(&path).map_err(name)
    }

    fn remove(preopen: u32, path: String) -> Result<(), String> {
        directory(preopen)?.unlink_file_at(&path).map_err(name)
    }

    fn remove_directory(preopen: u32, path: String) -> Result<(), String> {
        directory(preopen)?.remove_directory_at(&path).map_err(name)
    }

    fn symlink(preopen: u32, target: String, path: String) -> Result<(), String> {
        directory(preopen)?.symlink_at(&target, &path).map_err(name)
    }

    fn read_link(preopen: u32, path: String) -> Result<String, String> {
        directory(preopen)?.readlink_at(&path).map_err(name)
    }

    fn hard_link(preopen: u32, old: String, new: String) -> Result<(), String> {
        Self::hard_link_across(preopen, old, preopen, new)
    }

    fn hard_link_across(from_preopen: u32, old: String, to_preopen: u32, new: String) -> Result<(), String> {
        directory(from_preopen)?
            .link_at(flags(false), &old, &directory(to_preopen)?, &new)
            .map_err(name)
    }

    fn rename(from_preopen: u32, old: String, to_preopen: u32, new: String) -> Result<(), String> {
        directory(from_preopen)?
            .rename_at(&old, &directory(to_preopen)?, &new)
            .map_err(name)
    }

    fn stat(preopen: u32, path: String, follow: bool) -> Result<FileStat, String> {
        let stat = directory(preopen)?.stat_at(flags(follow), &path).map_err(name)?;
        Ok(FileStat {
            kind: kind(stat.type_).to_owned(),
            size: stat.size,
            links: stat.link_count,
        })
    }

    fn set_times(preopen: u32, path: String, follow: bool, seconds: u64) -> Result<(), String> {
        let time = NewTimestamp::Timestamp(Datetime { seconds, nanoseconds: 0 });
        directory(preopen)?
            .set_times_at(flags(follow), &path, time, time)
            .map_err(name)
    }

    fn open_then_rename_then_read(preopen: u32, folder: String, renamed: String, path: String) -> Result<String, String> {
        let root = directory(preopen)?;
        let open = open_directory(&root, &folder).map_err(name)?;
        root.rename_at(&folder, &root, &renamed).map_err(name)?;
        read_below(&open, &path, flags(true)).map_err(name)
    }

    fn add(a: i32, b: i32) -> i32 {
        a.wrapping_add(b)
    }
}

fn directory(preopen: u32) -> Result<Descriptor, String> {
    let found = get_directories().into_iter().nth(preopen as usize);
    let (descriptor, _) = found.ok_or_else(|| format!("there is no preopen {preopen}"))?;
    Ok(descriptor)
}

/// For reading and changing; where changes are not granted, for reading alone.
fn open_directory(below: &Descriptor, path: &str) -> Result<Descriptor, ErrorCode> {
    let open = |wanted| below.open_at(flags(true), path, OpenFlags::DIRECTORY, wanted);
    open(DescriptorFlags::READ | DescriptorFlags::MUTATE_DIRECTORY).or_else(|_| open(DescriptorFlags::READ))
}

fn read_below(below: &Descriptor, path: &str, following: PathFlags) -> Result<String, ErrorCode> {
    let file = below.open_at(following, path, OpenFlags::empty(), DescriptorFlags::READ)?;
    let mut bytes = Vec::new();
    loop {
        let (chunk, end) = file.read(CHUNK, bytes.len() as u64)?;
        bytes.extend(chunk);
        if end {
            return Ok(String::from_utf8_lossy(&bytes).into_owned());
        }
    }
}

fn write_at(file: &Descriptor, text: &str, mut offset: u64) -> Result<(), ErrorCode> {
    let mut rest = text.as_bytes();
    while !rest.is_empty() {
        let written = file.write(rest, offset)?;
        offset += written;
        rest = rest.get(written as usize..).unwrap_or_default();
    }
    Ok(())
}

fn flags(follow: bool) -> PathFlags {
    if follow {
        PathFlags::SYMLINK_FOLLOW
    } else {
        PathFlags::empty()
    }
}

fn name(error: ErrorCode) -> String {
    error.name().to_owned()
}

fn kind(kind: DescriptorType) -> &'static str {
    match kind {
        DescriptorType::BlockDevice => "block-device",
        DescriptorType::CharacterDevice => "character-device",
        DescriptorType::Directory => "directory",
        DescriptorType::Fifo => "fifo",
        DescriptorType::SymbolicLink => "symbolic-link",
        DescriptorType::RegularFile => "regular-file",
        DescriptorType::Socket => "socket",
        DescriptorType::Unknown => "unknown",
    }
}

export!(Escape);
