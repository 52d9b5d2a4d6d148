//! A tiny library of two books; what matters is the documentation in its WIT.

wit_bindgen::generate!({ path: "wit" });

use exports::test::documented::shelves::{self, Book, Days, Genre, Refusal, Usage};

struct Library;

fn books() -> [Book; 2] {
    [
        Book {
            title: "Cosmos".into(),
            page_count: 365,
            kind: Genre::NonFiction,
            rights: Usage::TAKE_HOME | Usage::COPY_PAGES,
        },
        Book {
            title: "Dune".into(),
            page_count: 412,
            kind: Genre::Fiction,
            rights: Usage::TAKE_HOME,
        },
    ]
}

impl shelves::Guest for Library {
    fn find_book(title: String) -> Option<Book> {
        books().into_iter().find(|book| book.title == title)
    }

    fn titles(kind: Genre) -> Vec<String> {
        books()
            .into_iter()
            .filter(|book| book.kind == kind)
            .map(|book| book.title)
            .collect()
    }

    fn borrow_book(title: String, wanted: Days) -> Result<Days, Refusal> {
        match title.as_str() {
            "Cosmos" => Ok(wanted.min(28)),
            "Dune" => Err(Refusal::OnLoan(12)),
            _ => Err(Refusal::UnknownTitle),
        }
    }

    fn allows(rights: Usage, asked: Usage) -> bool {
        rights.contains(asked)
    }
}

impl Guest for Library {
    fn opening_hours(weekday: u8) -> String {
        match weekday {
            1..=5 => "9-18".into(),
            6 => "10-14".into(),
            _ => "closed".into(),
        }
    }

    fn tidy_up() {}
}

export!(Library);
