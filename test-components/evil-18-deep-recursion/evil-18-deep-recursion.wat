;; Calls itself without end. The addition after the call keeps it from being a loop in disguise.
(component
  (core module $code
    (func $recurse (export "recurse") (param i32) (result i32)
      (i32.add (i32.const 1) (call $recurse (i32.add (local.get 0) (i32.const 1)))))
    (func (export "add") (param i32 i32) (result i32)
      (i32.add (local.get 0) (local.get 1))))
  (core instance $guest (instantiate $code))

  (func (export "recurse") (param "from" u32) (result u32)
    (canon lift (core func $guest "recurse")))
  (func (export "add") (param "a" s32) (param "b" s32) (result s32)
    (canon lift (core func $guest "add"))))
