//! The page: one file that a browser shows without asking anybody for anything.

const PAGE: &str = include_str!("page.html");

/// Where the numbers go.
const PLACE: &str = "/*DATA*/null";

/// The page of these numbers.
pub fn page(json: &str) -> String {
    // So that no text in it ends the script.
    PAGE.replacen(PLACE, &json.trim().replace('<', "\\u003c"), 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_numbers_are_in_the_page_and_cannot_end_its_script() {
        assert_eq!(PAGE.matches(PLACE).count(), 1);
        let page = page("{\"name\":\"</script>\"}\n");
        assert!(page.contains("{\"name\":\"\\u003c/script>\"}"));
        assert_eq!(page.matches("</script>").count(), 1);
        for outside in ["http:", "https:", "src=", "@import", "url("] {
            assert!(!page.replace("http://www.w3.org/2000/svg", "").contains(outside), "{outside}");
        }
    }
}
