//! The markup of chats, and its escaping, so that a text is shown as it is.
//!
//! Anybody can choose names of images, objects and users. Unescaped they could call a channel, or show one address and
//! lead to another. Each template has one markup, and every value in it is escaped. Pure.

use serde::Deserialize;

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Markup {
    /// None: the text between the quotes is shown.
    #[default]
    Plain,
    /// Slack's mrkdwn: `<!channel>`, `<https://…|text>`.
    Slack,
    /// Markdown and HTML, as in cards of Teams: `[text](https://…)`, `<a href=…>`.
    Teams,
    /// Keybase: `*bold*`, `@here`.
    Keybase,
}

impl Markup {
    /// `text`, escaped so that none of it is markup.
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
