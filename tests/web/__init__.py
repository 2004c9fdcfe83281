"""What a person does with the page, in a real browser, against `omnigraph serve`."""
