;; Needs an interface that no host offers. Whether that is told at load or at the first call, it must be told by name.
(component
  (import "acme:secret/vault" (instance $vault
    (export "open" (func (param "code" u32) (result bool)))))
  (core func $open (canon lower (func $vault "open")))
  (core module $code
    (import "vault" "open" (func $open (param i32) (result i32)))
    (func (export "try-code") (param i32) (result i32) (call $open (local.get 0)))
    (func (export "add") (param i32 i32) (result i32)
      (i32.add (local.get 0) (local.get 1))))
  (core instance $guest (instantiate $code
    (with "vault" (instance (export "open" (func $open))))))

  (func (export "try-code") (param "code" u32) (result bool)
    (canon lift (core func $guest "try-code")))
  (func (export "add") (param "a" s32) (param "b" s32) (result s32)
    (canon lift (core func $guest "add"))))
