//! `list<u8>` at full speed.
//!
//! wasmtime's dynamic values hold a byte in forty, and a copy of a megabyte takes a tenth of a second. Its typed calls copy bytes as
//! bytes, but the types must be known when this program is compiled. So the signatures that byte lists usually come in are
//! spelled out here; any other one takes the dynamic road, which is slower but takes every type.

use std::pin::Pin;

use component2json::{Argument, Function, Kind, Returned, Type, TypeRef};
use wasmtime::Store;
use wasmtime::component::{ComponentNamedList, Func, Lift, Lower, Val};

use crate::guest::Guest;

/// Calls a function through the types it was found to have.
pub(crate) type ByteCall =
    for<'a> fn(Func, &'a mut Store<Guest>, Vec<Argument>) -> Pin<Box<dyn Future<Output = wasmtime::Result<Returned>> + Send + 'a>>;

/// A type that a byte function may take.
trait Input: Sized + Send {
    fn is(ty: &Type) -> bool;
    fn take(argument: Argument) -> Option<Self>;
}

/// A type that a byte function may return.
trait Output: Sized {
    fn is(ty: Option<&TypeRef>) -> bool;
    fn give(self) -> Returned;
}

macro_rules! plain {
    ($($rust:ty, $kind:ident, $val:ident;)*) => {$(
        impl Input for $rust {
            fn is(ty: &Type) -> bool {
                matches!(ty.kind, Kind::$kind)
            }
            fn take(argument: Argument) -> Option<Self> {
                match argument {
                    Argument::Val(Val::$val(value)) => Some(value),
                    _ => None,
                }
            }
        }
        impl Output for $rust {
            fn is(ty: Option<&TypeRef>) -> bool {
                ty.is_some_and(|ty| <Self as Input>::is(ty))
            }
            fn give(self) -> Returned {
                Returned::Val(Val::$val(self))
            }
        }
    )*};
}

plain! {
    bool, Bool, Bool;
    u32, U32, U32;
    u64, U64, U64;
    String, String, String;
}

impl Input for Vec<u8> {
    fn is(ty: &Type) -> bool {
        matches!(ty.kind, Kind::Bytes)
    }
    fn take(argument: Argument) -> Option<Self> {
        match argument {
            Argument::Bytes(bytes) => Some(bytes),
            Argument::Val(_) => None,
        }
    }
}

impl Output for Vec<u8> {
    fn is(ty: Option<&TypeRef>) -> bool {
        ty.is_some_and(|ty| <Self as Input>::is(ty))
    }
    fn give(self) -> Returned {
        Returned::Bytes(self)
    }
}

impl Output for Option<Vec<u8>> {
    fn is(ty: Option<&TypeRef>) -> bool {
        matches!(ty.map(|ty| &ty.kind), Some(Kind::Option(inner)) if matches!(inner.kind, Kind::Bytes))
    }
    fn give(self) -> Returned {
        self.map_or(Returned::Val(Val::Option(None)), Returned::SomeBytes)
    }
}

impl<T: Output> Output for Result<T, String>
where
    Self: ResultOfBytes,
{
    fn is(ty: Option<&TypeRef>) -> bool {
        match ty.map(|ty| &ty.kind) {
            Some(Kind::Result { ok, err: Some(err) }) => T::is(ok.as_ref()) && matches!(err.kind, Kind::String),
            _ => false,
        }
    }
    fn give(self) -> Returned {
        match self {
            Ok(value) => match value.give() {
                Returned::Bytes(bytes) => Returned::OkBytes(bytes),
                Returned::Val(val) => Returned::Val(Val::Result(Ok(Some(Box::new(val))))),
                other => other,
            },
            Err(text) => Returned::Val(Val::Result(Err(Some(Box::new(Val::String(text)))))),
        }
    }
}

/// The results that are spelled out below; keeps `Result<Option<…>>` from being one of them.
trait ResultOfBytes {}
impl ResultOfBytes for Result<Vec<u8>, String> {}
impl ResultOfBytes for Result<String, String> {}

/// The typed call for a function, if it is one of the usual ones.
pub(crate) fn byte_call(function: &Function) -> Option<ByteCall> {
    let has_bytes = function.params.iter().any(|param| contains_bytes(&param.ty)) || function.result.as_ref().is_some_and(contains_bytes);
    if !has_bytes {
        return None;
    }
    by_result::<Vec<u8>>(function)
        .or_else(|| by_result::<Option<Vec<u8>>>(function))
        .or_else(|| by_result::<Result<Vec<u8>, String>>(function))
        .or_else(|| by_result::<String>(function))
        .or_else(|| by_result::<Result<String, String>>(function))
        .or_else(|| by_result::<bool>(function))
        .or_else(|| by_result::<u32>(function))
        .or_else(|| by_result::<u64>(function))
}

/// Whether there is a byte list anywhere in a type.
pub(crate) fn contains_bytes(ty: &TypeRef) -> bool {
    let mut seen = std::collections::HashSet::new();
    let mut queue = vec![ty];
    while let Some(ty) = queue.pop() {
        if matches!(ty.kind, Kind::Bytes) {
            return true;
        }
        if seen.insert(std::ptr::from_ref::<Type>(ty)) {
            queue.extend(ty.children());
        }
    }
    false
}

fn by_result<R>(function: &Function) -> Option<ByteCall>
where
    R: Output + Lift + Send + Sync + 'static,
    (R,): ComponentNamedList + Lift,
{
    if !R::is(function.result.as_ref()) {
        return None;
    }
    match function.params.as_slice() {
        [] => Some(|func, store, _| {
            Box::pin(async move { Ok(func.typed::<(), (R,)>(&*store)?.call_async(store, ()).await?.0.give()) })
        }),
        [a] => first::<R>(&a.ty),
        [a, b] => pair::<R, Vec<u8>>(&a.ty, &b.ty).or_else(|| pair::<R, String>(&a.ty, &b.ty)),
        _ => None,
    }
}

fn first<R>(a: &Type) -> Option<ByteCall>
where
    R: Output + Lift + Send + Sync + 'static,
    (R,): ComponentNamedList + Lift,
{
    one::<R, Vec<u8>>(a).or_else(|| one::<R, String>(a)).or_else(|| one::<R, u32>(a)).or_else(|| one::<R, u64>(a))
}

fn one<R, A>(a: &Type) -> Option<ByteCall>
where
    A: Input + Lower + 'static,
    R: Output + Lift + Send + Sync + 'static,
    (A,): ComponentNamedList + Lower,
    (R,): ComponentNamedList + Lift,
{
    A::is(a).then_some(|func, store, arguments| {
        Box::pin(async move {
            let mut arguments = arguments.into_iter();
            let a = next::<A>(&mut arguments)?;
            Ok(func.typed::<(A,), (R,)>(&*store)?.call_async(store, (a,)).await?.0.give())
        })
    })
}

fn pair<R, A>(a: &Type, b: &Type) -> Option<ByteCall>
where
    A: Input + Lower + Send + Sync + 'static,
    R: Output + Lift + Send + Sync + 'static,
    (R,): ComponentNamedList + Lift,
{
    if !A::is(a) {
        return None;
    }
    two::<R, A, Vec<u8>>(b)
        .or_else(|| two::<R, A, String>(b))
        .or_else(|| two::<R, A, u32>(b))
        .or_else(|| two::<R, A, u64>(b))
        .or_else(|| two::<R, A, bool>(b))
}

fn two<R, A, B>(b: &Type) -> Option<ByteCall>
where
    A: Input + Lower + Send + Sync + 'static,
    B: Input + Lower + Send + Sync + 'static,
    R: Output + Lift + Send + Sync + 'static,
    (A, B): ComponentNamedList + Lower,
    (R,): ComponentNamedList + Lift,
{
    B::is(b).then_some(|func, store, arguments| {
        Box::pin(async move {
            let mut arguments = arguments.into_iter();
            let a = next::<A>(&mut arguments)?;
            let b = next::<B>(&mut arguments)?;
            Ok(func.typed::<(A, B), (R,)>(&*store)?.call_async(store, (a, b)).await?.0.give())
        })
    })
}

fn next<T: Input>(arguments: &mut impl Iterator<Item = Argument>) -> wasmtime::Result<T> {
    arguments.next().and_then(T::take).ok_or_else(|| wasmtime::format_err!("the arguments are not those of the function"))
}
