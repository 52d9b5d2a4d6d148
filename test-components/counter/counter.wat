;; Remembers in a global how often it was called: in a fresh instance every count starts at 1.
(component
  (core module $code
    (global $count (mut i32) (i32.const 0))

    (func (export "increment") (result i32)
      (global.set $count (i32.add (global.get $count) (i32.const 1)))
      (global.get $count))
    ;; Counts first, so that whoever went on with this instance would be found out.
    (func (export "trap")
      (global.set $count (i32.add (global.get $count) (i32.const 1)))
      unreachable)
    (func (export "spin")
      (global.set $count (i32.add (global.get $count) (i32.const 1)))
      (loop $again (br $again)))
    (func (export "add") (param i32 i32) (result i32)
      (i32.add (local.get 0) (local.get 1))))
  (core instance $guest (instantiate $code))

  (func (export "increment") (result u32) (canon lift (core func $guest "increment")))
  (func (export "trap") (canon lift (core func $guest "trap")))
  (func (export "spin") (canon lift (core func $guest "spin")))
  (func (export "add") (param "a" s32) (param "b" s32) (result s32)
    (canon lift (core func $guest "add"))))
