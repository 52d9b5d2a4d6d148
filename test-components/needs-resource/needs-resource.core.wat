;; The core half of the component; wit-component lifts it by the WIT beside it.
;; A counter is a cell of four bytes; its address is what the handle stands for.
(module
  (import "[export]test:needs-resource/counters@0.1.0" "[resource-new]counter" (func $new (param i32) (result i32)))
  (import "[export]test:needs-resource/counters@0.1.0" "[resource-rep]counter" (func $rep (param i32) (result i32)))
  (import "[export]test:needs-resource/counters@0.1.0" "[resource-drop]counter" (func $drop (param i32)))
  (memory (export "memory") 1)
  (global $free (mut i32) (i32.const 0))

  (func $make (param $start i32) (result i32)
    (i32.store (global.get $free) (local.get $start))
    (call $new (global.get $free))
    (global.set $free (i32.add (global.get $free) (i32.const 4))))

  (func (export "test:needs-resource/counters@0.1.0#[constructor]counter") (param i32) (result i32)
    (call $make (local.get 0)))
  (func (export "test:needs-resource/counters@0.1.0#[static]counter.zero") (result i32)
    (call $make (i32.const 0)))
  ;; A borrowed counter of our own arrives as its address.
  (func (export "test:needs-resource/counters@0.1.0#[method]counter.next") (param $cell i32) (result i32)
    (i32.load (local.get $cell))
    (i32.store (local.get $cell) (i32.add (i32.load (local.get $cell)) (i32.const 1))))
  (func (export "test:needs-resource/counters@0.1.0#peek") (param $cell i32) (result i32)
    (i32.load (local.get $cell)))
  ;; An owned one arrives as a handle, and it is on us to drop it.
  (func (export "test:needs-resource/counters@0.1.0#finish") (param $handle i32) (result i32)
    (i32.load (call $rep (local.get $handle)))
    (call $drop (local.get $handle)))
  (func (export "test:needs-resource/counters@0.1.0#add") (param i32 i32) (result i32)
    (i32.add (local.get 0) (local.get 1))))
