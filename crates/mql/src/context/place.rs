//! Where the pipeline stands that is being parsed.

/// The purpose of a pipeline.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Inside {
    /// An `aggregate`, or a command that is converted to one.
    #[default]
    Aggregate,
    /// A branch of a `$facet`.
    Facet,
    /// The `pipeline` of a `$lookup`.
    Lookup,
    /// The `pipeline` of a `$unionWith`.
    Union,
    /// The definition of a view.
    View,
}

/// The position of the pipeline that is being parsed, among other pipelines.
#[derive(Clone, Debug, Default)]
pub struct Place {
    /// What it reads: `database.collection`, or `database.$cmd.aggregate` for a pipeline without a
    /// collection.
    pub namespace: String,
    /// The purpose of the pipeline.
    pub inside: Inside,
    /// The number of enclosing pipelines.
    pub depth: usize,
    /// True for a branch of a `$facet`, and for pipelines inside one.
    pub below_facet: bool,
    /// True if a source stage before the first stage has been removed already.
    pub behind_source: bool,
    /// The view that the client named, if the first stages are those of the view.
    pub view: Option<ViewStages>,
    /// The positions at which the stages of views end; ascending.
    pub view_ends: Vec<usize>,
    /// True if an earlier stage sets the `score` of documents.
    pub has_score: bool,
    /// True if an earlier stage sets the `scoreDetails` of documents.
    pub has_score_details: bool,
}

/// The stages of a view at the beginning of a pipeline.
#[derive(Clone, Debug)]
pub struct ViewStages {
    /// The view, `database.view`.
    pub namespace: String,
    /// The number of stages, including those of the views below it.
    pub count: usize,
    /// The positions at which the stages of each of these views end, the innermost view's first.
    pub ends: Vec<usize>,
}

impl Place {
    /// Returns the place of an `aggregate`'s pipeline.
    pub fn of(namespace: &str) -> Self {
        Place { namespace: namespace.to_owned(), ..Place::default() }
    }

    /// Returns true if the pipeline reads no collection.
    pub fn has_no_collection(&self) -> bool {
        self.namespace.ends_with(".$cmd.aggregate")
    }

    /// Returns the database of the namespace.
    pub fn db(&self) -> &str {
        self.namespace.split('.').next().unwrap_or_default()
    }
}
