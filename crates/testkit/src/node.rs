//! A document as a tree, which is slow and easy to change. For tests only.

use quire_document::{ArrayWriter, Doc, DocBuf, DocWriter, Value, ValueBuf, literal};

/// A value of a tree.
#[derive(Clone, Debug, PartialEq)]
pub enum Node {
    /// A document; names may repeat.
    Doc(Vec<(String, Node)>),
    /// An array of nodes.
    Array(Vec<Node>),
    /// A value that is neither a document nor an array.
    Leaf(ValueBuf),
}

impl Node {
    /// Returns the tree of a document.
    pub fn from_doc(doc: Doc<'_>) -> Node {
        Node::Doc(
            doc.fields().map(|(name, value)| (name.to_owned(), Node::from_value(value))).collect(),
        )
    }

    /// Returns the tree of a value.
    pub fn from_value(value: Value<'_>) -> Node {
        match value {
            Value::Document(doc) => Node::from_doc(doc),
            Value::Array(array) => Node::Array(array.iter().map(Node::from_value).collect()),
            other => Node::Leaf(ValueBuf::new(other)),
        }
    }

    /// Returns a string leaf.
    pub fn text(text: &str) -> Node {
        Node::Leaf(ValueBuf::new(text))
    }

    /// Returns the document's bytes. Panics if the node is not a document.
    pub fn to_doc(&self) -> DocBuf {
        let Node::Doc(fields) = self else { panic!("not a document: {self:?}") };
        DocBuf::build(|writer| write_fields(writer, fields))
    }

    /// Returns the literal text.
    pub fn show(&self) -> String {
        let wrapped = DocBuf::build(|writer| write_field(writer, "v", self));
        literal::print(wrapped.get("v").expect("just written"))
    }

    /// Returns the field with this name.
    pub fn get(&self, name: &str) -> Option<&Node> {
        self.fields()?.iter().find(|(key, _)| key == name).map(|(_, node)| node)
    }

    /// Returns the field with this name, mutably.
    pub fn get_mut(&mut self, name: &str) -> Option<&mut Node> {
        let Node::Doc(fields) = self else { return None };
        fields.iter_mut().find(|(key, _)| key == name).map(|(_, node)| node)
    }

    /// Sets a field; a new field is added at the end.
    pub fn set(&mut self, name: &str, node: Node) {
        let Node::Doc(fields) = self else { return };
        match fields.iter_mut().find(|(key, _)| key == name) {
            Some((_, old)) => *old = node,
            None => fields.push((name.to_owned(), node)),
        }
    }

    /// Returns the fields of a document.
    pub fn fields(&self) -> Option<&[(String, Node)]> {
        if let Node::Doc(fields) = self { Some(fields) } else { None }
    }

    /// Returns the text of a string leaf.
    pub fn as_str(&self) -> Option<&str> {
        if let Node::Leaf(value) = self { value.as_value().as_str() } else { None }
    }

    /// Returns the value of a leaf.
    pub fn as_leaf(&self) -> Option<Value<'_>> {
        if let Node::Leaf(value) = self { Some(value.as_value()) } else { None }
    }

    /// Returns the node at a dotted path; -1 is the last element of an array.
    pub fn at(&self, path: &str) -> Option<&Node> {
        path.split('.').try_fold(self, |node, step| match node {
            Node::Array(items) => match step.parse::<i64>().ok()? {
                back if back < 0 => items
                    .len()
                    .checked_sub(back.unsigned_abs() as usize)
                    .and_then(|at| items.get(at)),
                at => items.get(at as usize),
            },
            other => other.get(step),
        })
    }
}

fn write_fields(writer: &mut DocWriter<'_>, fields: &[(String, Node)]) {
    fields.iter().for_each(|(name, node)| write_field(writer, name, node));
}

fn write_field(writer: &mut DocWriter<'_>, name: &str, node: &Node) {
    match node {
        Node::Doc(fields) => write_fields(&mut writer.document(name), fields),
        Node::Array(items) => write_items(&mut writer.array(name), items),
        Node::Leaf(value) => {
            writer.append(name, value);
        }
    }
}

fn write_items(writer: &mut ArrayWriter<'_>, items: &[Node]) {
    for item in items {
        match item {
            Node::Doc(fields) => write_fields(&mut writer.document(), fields),
            Node::Array(inner) => write_items(&mut writer.array(), inner),
            Node::Leaf(value) => {
                writer.push(value);
            }
        }
    }
}
