//! `list<u8>` at full speed.
//!
//! wasmtime's dynamic values hold a byte in forty, and a copy of a megabyte takes a tenth of a second. Its typed calls copy bytes as
//! bytes, but the types must be known when this program is compiled. So the signatures that byte lists usually come in are
//! spelled out here: up to two parameters of plain types, and bytes, text, a number, a truth or nothing back, perhaps as `option` or
//! `result`. Any other signature takes the dynamic road, which is slower but takes every type.

use std::pin::Pin;

use component2json::{Argument, Function, Kind, Returned, Type, TypeRef};
use wasmtime::Store;
use wasmtime::component::{ComponentNamedList, Func, Lift, Lower, Val};

use crate::guest::Guest;

/// Calls a function through the types it was found to have.
pub(crate) type ByteCall = for<'a> fn(Func, &'a mut Store<Guest>, Vec<Argument>) -> Pending<'a>;

type Pending<'a> = Pin<Box<dyn Future<Output = wasmtime::Result<Option<Returned>>> + Send + 'a>>;

/// A type that a byte function may take.
trait Input: Lower + Send + Sync + 'static {
    fn is(ty: &Type) -> bool;
    fn take(argument: Argument) -> Option<Self>
    where
        Self: Sized;
}

/// A type that a byte function may return.
trait Output: Lift + Send + Sync + 'static {
    fn is(ty: &Type) -> bool;
    fn give(self) -> Returned;
}

/// All that a function returns: nothing, or one value.
trait Results: ComponentNamedList + Lift + Send + Sync + 'static {
    fn are(ty: Option<&TypeRef>) -> bool;
    fn give(self) -> Option<Returned>;
}

impl Results for () {
    fn are(ty: Option<&TypeRef>) -> bool {
        ty.is_none()
    }
    fn give(self) -> Option<Returned> {
        None
    }
}

impl<T: Output> Results for (T,) {
    fn are(ty: Option<&TypeRef>) -> bool {
        ty.is_some_and(|ty| T::is(ty))
    }
    fn give(self) -> Option<Returned> {
        Some(self.0.give())
    }
}

/// Types that are the same on both ways.
macro_rules! plain {
    ($($rust:ty, $kind:ident;)*) => {$(
        impl Input for $rust {
            fn is(ty: &Type) -> bool {
                matches!(ty.kind, Kind::$kind)
            }
            fn take(argument: Argument) -> Option<Self> {
                match argument {
                    Argument::Val(Val::$kind(value)) => Some(value),
                    _ => None,
                }
            }
        }
        impl Output for $rust {
            fn is(ty: &Type) -> bool {
                matches!(ty.kind, Kind::$kind)
            }
            fn give(self) -> Returned {
                Returned::Val(Val::$kind(self))
            }
        }
    )*};
}

plain! {
    bool, Bool;
    u32, U32;
    u64, U64;
    String, String;
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
    fn is(ty: &Type) -> bool {
        matches!(ty.kind, Kind::Bytes)
    }
    fn give(self) -> Returned {
        Returned::Bytes(self)
    }
}

impl Output for Option<Vec<u8>> {
    fn is(ty: &Type) -> bool {
        matches!(&ty.kind, Kind::Option(inner) if matches!(inner.kind, Kind::Bytes))
    }
    fn give(self) -> Returned {
        self.map_or(Returned::Val(Val::Option(None)), Returned::SomeBytes)
    }
}

/// `result<T, string>`, with `ok` turning its payload into what is returned.
macro_rules! results {
    ($($ok:ty, $is:expr, $give:expr;)*) => {$(
        impl Output for Result<$ok, String> {
            fn is(ty: &Type) -> bool {
                let ok_is: fn(Option<&Kind<TypeRef>>) -> bool = $is;
                match &ty.kind {
                    Kind::Result { ok, err: Some(err) } => {
                        ok_is(ok.as_ref().map(|ty| &ty.kind)) && matches!(err.kind, Kind::String)
                    }
                    _ => false,
                }
            }
            fn give(self) -> Returned {
                let ok: fn($ok) -> Returned = $give;
                match self {
                    Ok(value) => ok(value),
                    Err(text) => Returned::Val(Val::Result(Err(Some(Box::new(Val::String(text)))))),
                }
            }
        }
    )*};
}

results! {
    (), |ok| ok.is_none(), |()| Returned::Val(Val::Result(Ok(None)));
    Vec<u8>, |ok| matches!(ok, Some(Kind::Bytes)), Returned::OkBytes;
    String, |ok| matches!(ok, Some(Kind::String)), |text| Returned::Val(Val::Result(Ok(Some(Box::new(Val::String(text))))));
}

/// The typed call for a function, if it is one of the usual ones.
pub(crate) fn byte_call(function: &Function) -> Option<ByteCall> {
    let mut types = function.params.iter().map(|param| &param.ty).chain(&function.result);
    if !types.any(contains_bytes) {
        return None;
    }
    returning::<()>(function)
        .or_else(|| returning::<(Vec<u8>,)>(function))
        .or_else(|| returning::<(Option<Vec<u8>>,)>(function))
        .or_else(|| returning::<(Result<Vec<u8>, String>,)>(function))
        .or_else(|| returning::<(Result<(), String>,)>(function))
        .or_else(|| returning::<(String,)>(function))
        .or_else(|| returning::<(Result<String, String>,)>(function))
        .or_else(|| returning::<(bool,)>(function))
        .or_else(|| returning::<(u32,)>(function))
        .or_else(|| returning::<(u64,)>(function))
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

fn returning<R: Results>(function: &Function) -> Option<ByteCall> {
    if !R::are(function.result.as_ref()) {
        return None;
    }
    match function.params.as_slice() {
        [] => Some(|func, store, _| Box::pin(typed::<R, ()>(func, store, Some(())))),
        [a] => one::<R, Vec<u8>>(&a.ty)
            .or_else(|| one::<R, String>(&a.ty))
            .or_else(|| one::<R, u32>(&a.ty))
            .or_else(|| one::<R, u64>(&a.ty)),
        [a, b] => first::<R, Vec<u8>>(&a.ty, &b.ty).or_else(|| first::<R, String>(&a.ty, &b.ty)),
        _ => None,
    }
}

fn one<R: Results, A: Input>(a: &Type) -> Option<ByteCall> {
    A::is(a).then_some(|func, store, arguments| {
        let mut arguments = arguments.into_iter();
        let params = arguments.next().and_then(A::take).map(|a| (a,));
        Box::pin(typed::<R, (A,)>(func, store, params))
    })
}

fn first<R: Results, A: Input>(a: &Type, b: &Type) -> Option<ByteCall> {
    if !A::is(a) {
        return None;
    }
    two::<R, A, Vec<u8>>(b)
        .or_else(|| two::<R, A, String>(b))
        .or_else(|| two::<R, A, u32>(b))
        .or_else(|| two::<R, A, u64>(b))
        .or_else(|| two::<R, A, bool>(b))
}

fn two<R: Results, A: Input, B: Input>(b: &Type) -> Option<ByteCall> {
    B::is(b).then_some(|func, store, arguments| {
        let mut arguments = arguments.into_iter();
        let a = arguments.next().and_then(A::take);
        let b = arguments.next().and_then(B::take);
        Box::pin(typed::<R, (A, B)>(func, store, a.zip(b)))
    })
}

async fn typed<R: Results, P>(func: Func, store: &mut Store<Guest>, params: Option<P>) -> wasmtime::Result<Option<Returned>>
where
    P: ComponentNamedList + Lower + Send + Sync + 'static,
{
    // The plan that chose this call also made the arguments.
    let params = params.ok_or_else(|| wasmtime::format_err!("the arguments are not those of the function"))?;
    let results = func.typed::<P, R>(&*store)?.call_async(store, params).await?;
    Ok(results.give())
}
