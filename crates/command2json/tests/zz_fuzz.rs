use proptest::prelude::*;
proptest! {
    #![proptest_config(ProptestConfig { cases: 3000, failure_persistence: None, ..ProptestConfig::default() })]
    #[test]
    fn fuzz(unit in prop::collection::vec(prop::sample::select(vec!["a","cmd"," ","{","}","\"","\\","\n","#","\"\"\"","/*","*/","//","/-","(","=",";","\r","#\"","\"#","\u{2028}","\u{feff}","\\\n","b","1","#true"]), 1..8), n in prop::sample::select(vec![1usize,5,20,38,5000])) {
        let text = unit.concat().repeat(n);
        std::fs::write("/tmp/wc-fuzz-last", format!("{:?} x{n}", unit.concat())).unwrap();
        let t = std::time::Instant::now();
        let _ = command2json::read_usage_kdl(&text);
        if t.elapsed().as_secs() > 3 { eprintln!("SLOW {:?} {:?} x{n}", t.elapsed(), unit.concat()); }
    }
}
