//! The markup languages of chats, and the escapes that make a chat show a text unchanged.
//!
//! Users choose the names of images and objects and their own names. Without escapes, such names could notify a
//! channel, or show one address and link to another. Each template has one markup language, in which every value is
//! escaped.

use serde::Deserialize;

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Markup {
    /// No markup: the receiver shows text unchanged.
    #[default]
    Plain,
    /// Slack's mrkdwn: `<!channel>`, `<https://…|text>`.
    Slack,
    /// Markdown and HTML, as in cards of Teams: `[text](https://…)`, `<a href=…>`.
    Teams,
    /// Keybase's markup: `*bold*`, `@here`.
    Keybase,
}

impl Markup {
    /// Returns `text` with escapes, so that no part of `text` acts as markup.
    pub fn escaped(self, text: &str) -> String {
        let mut out = String::with_capacity(text.len());
        let mut before = ' ';
        for char in text.chars() {
            match (self, char) {
                (Self::Slack | Self::Teams, '&') => out.push_str("&amp;"),
                (Self::Slack | Self::Teams, '<') => out.push_str("&lt;"),
                (Self::Slack | Self::Teams, '>') => out.push_str("&gt;"),
                (Self::Teams, '\\' | '`' | '*' | '_' | '[' | ']' | '~')
                | (Self::Keybase, '\\' | '`' | '*' | '_' | '~' | '>') => {
                    out.extend(['\\', char]);
                }
                // The at sign of a digest follows a name and mentions nobody.
                (Self::Keybase, '@') if !before.is_alphanumeric() => out.extend([char, '\u{200b}']),
                _ => out.push(char),
            }
            before = char;
        }
        out
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_markup_has_its_own_signs() {
        let text = r"<!channel> <https://e.vil|a&b> [k](https://e.vil) *b* @here r/a_b@sha256:0";
        assert_eq!(Markup::Plain.escaped(text), text);
        assert_eq!(
            Markup::Slack.escaped(text),
            r"&lt;!channel&gt; &lt;https://e.vil|a&amp;b&gt; [k](https://e.vil) *b* @here r/a_b@sha256:0"
        );
        assert_eq!(
            Markup::Teams.escaped(text),
            r"&lt;!channel&gt; &lt;https://e.vil|a&amp;b&gt; \[k\](https://e.vil) \*b\* @here r/a\_b@sha256:0"
        );
        assert_eq!(Markup::Keybase.escaped(r"*b* @here r/a_b@sha256:0"), "\\*b\\* @\u{200b}here r/a\\_b@sha256:0");
    }
}
